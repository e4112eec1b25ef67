"""Models: one Protocol, litellm in a separate process, and a scripted stand-in."""
