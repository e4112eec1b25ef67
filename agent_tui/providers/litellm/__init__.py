"""Hosted models and servers that speak like them, through litellm in a process of its own.

`host` and `worker_process` run in the program, `worker` and what it imports in the process;
`protocol` is what they say to each other, `wire` our messages in the formats of the services.
"""
