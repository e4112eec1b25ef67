"""Hosted models and servers that speak like them, through a process of its own.

`host` and `worker_process` run in the program, `worker` and what it imports in the process;
`protocol` is what they say to each other, `providers.wires` how each model is spoken to.
"""
