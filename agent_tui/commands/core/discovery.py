"""Finding the program's own commands: what is decorated in a module of this room is one."""

import importlib
import pkgutil
from collections.abc import Iterable

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


def built_in_commands(plugins: Iterable[Command] = ()) -> CommandRegistry:
    """Every command of the program, and those of `plugins`, which take the place of none.

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
    own = (*first, *(commands[name] for name in sorted(commands)))
    taken = {name for entry in own for name in (entry.name, *entry.aliases)}
    return CommandRegistry((*own, *(entry for entry in plugins if entry.name not in taken)))
