"""How a feature adds a verb to ``agent-tui models``."""

import argparse
from collections.abc import Callable
from typing import Protocol

from agent_tui.cli.command_parser import CommandParser


class AddVerb(Protocol):
    """Adds a subcommand: its name, what runs it, and a summary."""

    def __call__(
        self, name: str, command: Callable[[argparse.Namespace], int], summary: str, /
    ) -> CommandParser:
        """Returns the parser of the subcommand."""
        ...
