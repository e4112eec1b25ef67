"""Slash commands: one decorated function each, gathered here in the order they are shown."""

from typing import TYPE_CHECKING

from agent_tui.ui.commands.registry import Command, CommandRegistry, command, split_command

if TYPE_CHECKING:
    from agent_tui.ui.commands.host import CommandHost

__all__ = [
    "Command",
    "CommandHost",
    "CommandRegistry",
    "built_in_commands",
    "command",
    "split_command",
]


def built_in_commands() -> CommandRegistry:
    """Every command: context, talking, trust, going back, sessions, the program itself."""
    # The commands pull in most of the program; the prompt needs only the registry to be drawn.
    from agent_tui.ui.commands import (
        branching,
        compacting,
        looping,
        program,
        sessions,
        talking,
        trusting,
    )

    return CommandRegistry(
        entry
        for module in (compacting, talking, looping, trusting, branching, sessions, program)
        for entry in vars(module).values()
        if isinstance(entry, Command)
    )
