"""The program's own commands, found in the modules of `agent_tui.commands` and in features."""

import importlib
import pkgutil
from itertools import chain

import agent_tui.commands
from agent_tui.commands.core.command import Command
from agent_tui.feature import own_objects

_FIRST = (
    "help",
    "model",
    "resume",
    "new",
    "compact",
    "context",
    "init",
    "settings",
    "thinking",
    "permissions",
)
"""Commands that users look for first; the others follow by name."""


def own_commands() -> tuple[Command, ...]:
    """The program's own commands, in the order shown; a feature can replace one of the core.

    This imports most of the program, so do not call it before the first paint.
    """
    room = agent_tui.commands
    modules = [
        importlib.import_module(f"{room.__name__}.{found.name}")
        for found in pkgutil.iter_modules(room.__path__)
    ]
    commands = {
        entry.name: entry
        for entry in chain(
            *(vars(one).values() for one in modules), own_objects("agent_tui.commands")
        )
        if isinstance(entry, Command)
    }
    first = [commands.pop(name) for name in _FIRST if name in commands]
    return (*first, *(commands[name] for name in sorted(commands)))
