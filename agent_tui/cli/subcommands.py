"""The subcommands by name; each is imported when it is asked for."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol


class Subcommand(Protocol):
    """A module that is a subcommand."""

    def build_parser(self) -> argparse.ArgumentParser:
        """Its command line."""
        ...

    def run_command(self, argv: Sequence[str], /) -> int:
        """Run it with the arguments after its name; returns the exit code."""
        ...


def _sessions() -> Subcommand:
    from agent_tui.cli import sessions_command

    return sessions_command


def _context() -> Subcommand:
    from agent_tui.cli import context_command

    return context_command


def _compact() -> Subcommand:
    from agent_tui.cli import compact_command

    return compact_command


def _models() -> Subcommand:
    from agent_tui.cli import models_command

    return models_command


def _config() -> Subcommand:
    from agent_tui.cli import config_command

    return config_command


def _permissions() -> Subcommand:
    from agent_tui.cli import permissions_command

    return permissions_command


def _trust() -> Subcommand:
    from agent_tui.cli import trust_command

    return trust_command


def _mcp() -> Subcommand:
    from agent_tui.cli import mcp_command

    return mcp_command


def _completion() -> Subcommand:
    from agent_tui.cli import completion_command

    return completion_command


def _doctor() -> Subcommand:
    from agent_tui.cli import doctor_command

    return doctor_command


SUBCOMMANDS: Mapping[str, Callable[[], Subcommand]] = MappingProxyType(
    {
        "models": _models,
        "sessions": _sessions,
        "context": _context,
        "compact": _compact,
        "config": _config,
        "permissions": _permissions,
        "trust": _trust,
        "mcp": _mcp,
        "completion": _completion,
        "doctor": _doctor,
    }
)
