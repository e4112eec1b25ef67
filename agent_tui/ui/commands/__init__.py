"""Slash commands: one decorated function each, gathered here in the order they are shown."""

from agent_tui.ui.commands import program, sessions, talking
from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import Command, CommandRegistry, command, split_command

__all__ = [
    "Command",
    "CommandHost",
    "CommandRegistry",
    "built_in_commands",
    "command",
    "split_command",
]


def built_in_commands() -> CommandRegistry:
    """Every command of the program: talking, sessions, the program itself."""
    return CommandRegistry(
        entry
        for module in (talking, sessions, program)
        for entry in vars(module).values()
        if isinstance(entry, Command)
    )
