"""Finding the program's own commands: what is decorated in a module of this room is one."""

import importlib
import pkgutil

import agent_tui.commands
from agent_tui.commands.core.command import Command
from agent_tui.commands.core.registry import CommandRegistry

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
"""What a person looks for first; the others follow by name."""


def built_in_commands() -> CommandRegistry:
    """Every command of the program.

    The modules pull in most of the program, so this is not called before the first paint.
    """
    room = agent_tui.commands
    modules = [
        importlib.import_module(f"{room.__name__}.{found.name}")
        for found in pkgutil.iter_modules(room.__path__)
    ]
    commands = {
        entry.name: entry
        for module in modules
        for entry in vars(module).values()
        if isinstance(entry, Command)
    }
    first = [commands.pop(name) for name in _FIRST if name in commands]
    return CommandRegistry((*first, *(commands[name] for name in sorted(commands))))
