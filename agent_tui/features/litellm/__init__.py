"""Calls models for which we have no wire, through litellm in a separate process.

`process` manages that process, `protocol` defines its messages; all other modules run in it.
"""
