"""Slash commands: each written once, for every front (the screen, ``--plain``, ``-p``).

A module here holds the commands of one subject, as functions under `command`; all of them are
found by `load_commands`. What they are made of and how a front reaches them is in `core`.
"""
