"""``agent-tui login``: sign in to an account, and what is signed in to."""

import argparse
import asyncio
import os
from collections.abc import Sequence

from agent_tui.cli.output import complain, write_text
from agent_tui.errors import AgentTuiError
from agent_tui.providers.accounts.account import Account
from agent_tui.providers.accounts.device import DeviceCode, sign_in
from agent_tui.providers.accounts.table import ACCOUNTS
from agent_tui.safe_text import safe_text

_DESCRIPTION = """\
Sign in to an account whose models to use. A code is shown, which you enter at a page, in a browser
on any machine. What that gives is kept where litellm keeps it, readable by you only.
Without NAME: what you are signed in to."""

NAMES = tuple(account.name for account in ACCOUNTS.values())


def build_parser() -> argparse.ArgumentParser:
    """The command line of ``agent-tui login``."""
    parser = argparse.ArgumentParser(
        prog="agent-tui login",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="?", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui login`` with the arguments after that word; returns the exit code.

    Raises:
        AgentTuiError: Nobody was signed in.
    """
    name = build_parser().parse_args(list(argv)).name
    if name is None:
        _list()
        return 0
    account = account_called(name)
    try:
        asyncio.run(sign_in(account.service(os.environ), lambda code: _show(account, code)))
    except KeyboardInterrupt:
        complain("Ended: nobody was signed in.")
        return 130
    except OSError as error:
        raise AgentTuiError(f"What {account.title} gave cannot be kept: {error}.") from error
    write_text(f"Signed in to {account.title}. Its models are called {account.provider}/...\n")
    return 0


def account_called(name: str) -> Account:
    """The account of that name, which is one of `NAMES`."""
    return next(account for account in ACCOUNTS.values() if account.name == name)


def _list() -> None:
    width = max(map(len, NAMES))
    for account in ACCOUNTS.values():
        state = "signed in" if account.is_signed_in(os.environ) else "not signed in"
        write_text(f"{account.name:{width}}  {state}  ({account.provider}/...)\n")


def _show(account: Account, code: DeviceCode) -> None:
    page, user_code = (safe_text(text, keep_newlines=False) for text in (code.page, code.user_code))
    write_text(
        f"To sign in to {account.title}, open\n\n    {page}\n\nand enter\n\n    {user_code}\n\n"
        f"The code is good for {code.expires_in_s / 60:.0f} minutes. Give it to nobody. "
        "Waiting; Ctrl+C ends it.\n"
    )
