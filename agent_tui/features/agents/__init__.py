"""One list over the sessions of all agents on this machine."""
