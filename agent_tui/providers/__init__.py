"""Models: one Protocol, litellm in a process of its own, and a scripted stand-in."""
