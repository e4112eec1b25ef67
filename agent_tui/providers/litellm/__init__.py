"""Models for which we have no wire, through litellm in a process of its own.

`process` keeps that process, `protocol` is what the two say to each other; all others run in it.
"""
