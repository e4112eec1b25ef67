"""How a feature adds a verb to a subcommand of another: to ``sessions`` or to ``models``."""

import argparse
from collections.abc import Callable
from typing import Protocol

from agent_tui.cli.command_parser import CommandParser
from agent_tui.sessions.store import SessionStore


class AddSessionVerb(Protocol):
    """Adds a verb of ``sessions``: name, what runs it, a summary, and text below its options."""

    def __call__(
        self,
        name: str,
        command: Callable[[argparse.Namespace, SessionStore], int],
        summary: str,
        more: str = "",
        /,
    ) -> CommandParser:
        """Returns the parser of the verb."""
        ...


class AddModelVerb(Protocol):
    """Adds a verb of ``models``: its name, what runs it, and a summary."""

    def __call__(
        self, name: str, command: Callable[[argparse.Namespace], int], summary: str, /
    ) -> CommandParser:
        """Returns the parser of the verb."""
        ...
