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


_FIRST = ("help", "model", "resume", "new", "compact", "context", "init", "settings")
"""What a person looks for first; the others follow by what they are about."""


def built_in_commands() -> CommandRegistry:
    """Every command: those one looks for first, then by what they are about."""
    # The commands pull in most of the program; the prompt needs only the registry to be drawn.
    from agent_tui.ui.commands import (
        branching,
        compacting,
        finding,
        looping,
        mcp,
        program,
        remembering,
        sessions,
        settings,
        starting,
        talking,
        trusting,
    )

    found = [
        entry
        for module in (
            compacting,
            talking,
            finding,
            looping,
            starting,
            remembering,
            trusting,
            mcp,
            branching,
            sessions,
            settings,
            program,
        )
        for entry in vars(module).values()
        if isinstance(entry, Command)
    ]
    places = {name: place for place, name in enumerate(_FIRST)}
    return CommandRegistry(sorted(found, key=lambda entry: places.get(entry.name, len(places))))
