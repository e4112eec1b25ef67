"""``agent-tui logout``: forget what signing in gave."""

import argparse
import os
from collections.abc import Sequence

from agent_tui.cli.login.login import NAMES, account_called
from agent_tui.cli.output import write_text
from agent_tui.errors import AgentTuiError


def build_parser() -> argparse.ArgumentParser:
    """The command line of ``agent-tui logout``."""
    parser = argparse.ArgumentParser(
        prog="agent-tui logout",
        description="Forget what signing in gave. The service is not told.",
        allow_abbrev=False,
    )
    parser.add_argument("name", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui logout`` with the arguments after that word; returns the exit code.

    Raises:
        AgentTuiError: What is kept cannot be removed.
    """
    account = account_called(build_parser().parse_args(list(argv)).name)
    try:
        was_in = account.sign_out(os.environ)
    except OSError as error:
        raise AgentTuiError(
            f"What is kept for {account.title} cannot be removed: {error}."
        ) from error
    was = f"Signed out of {account.title}" if was_in else f"Nobody was signed in to {account.title}"
    write_text(f"{was}.\n")
    return 0
