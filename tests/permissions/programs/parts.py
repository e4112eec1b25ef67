"""One command as the tables of programs see it."""

from agent_tui.permissions.shell.parts import split_command
from agent_tui.permissions.shell.words import CommandPart


def part_of(command: str) -> CommandPart:
    """The last part of a command: what a wrapper or a pipe runs at its end."""
    parts = split_command(command)
    assert not parts.problem
    return parts.commands[-1]
