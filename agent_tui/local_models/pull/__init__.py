"""Bringing a model to this machine.

`client` is what the program calls; `worker` does the work in a process of its own; `job` is what
the two say to each other.
"""
