"""How a feature adds a verb to ``agent-tui sessions``."""

import argparse
from collections.abc import Callable
from typing import Protocol

from agent_tui.cli.command_parser import CommandParser
from agent_tui.sessions.store import SessionStore


class AddVerb(Protocol):
    """Adds a subcommand: its name, what runs it, a summary, and text below its options."""

    def __call__(
        self,
        name: str,
        command: Callable[[argparse.Namespace, SessionStore], int],
        summary: str,
        more: str = "",
        /,
    ) -> CommandParser:
        """Returns the parser of the subcommand."""
        ...
