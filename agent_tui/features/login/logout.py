"""``agent-tui logout``: deletes a sign-in or a stored key from this machine."""

import argparse
from collections.abc import Sequence

from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.key_store import key_store, login_names
from agent_tui.cli.output import write_text
from agent_tui.errors import AgentTuiError
from agent_tui.features.login.login import account_called, named_accounts, read_account_name
from agent_tui.features.login.named import DEFAULT
from agent_tui.providers.kept_keys import KeyringError

_DESCRIPTION = "Sign out of an account or delete a stored key, on this machine only."


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui logout``."""
    parser = subcommand_parser("logout", _DESCRIPTION)
    names = login_names()
    parser.add_argument("name", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--as", dest="account", metavar="ACCOUNT", help="the name of the account")
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui logout`` with the arguments after that word; returns the exit code.

    Raises:
        AgentTuiError: The stored data cannot be removed.
    """
    arguments = build_parser().parse_args(list(argv))
    name, called = arguments.name, read_account_name(arguments.account)
    account = account_called(name)
    try:
        if account:
            was_kept = account.sign_out(named_accounts().environ_of(account, called or DEFAULT))
        else:
            was_kept = key_store().forget(name, called)
    except KeyringError as error:
        raise AgentTuiError(
            f"The {name} key is no longer used, but may still be in the keyring.", str(error)
        ) from error
    except OSError as error:
        raise AgentTuiError(f"Cannot remove what is stored for {name}: {error}.") from error
    named = f" as {called}" if called else ""
    if account:
        yes, no = (
            f"Signed out of {account.title}{named}.",
            f"Not signed in to {account.title}{named}.",
        )
    else:
        yes, no = f"Deleted the {name} key{named}.", f"No {name} key is stored{named}."
    write_text(f"{yes if was_kept else no}\n")
    return 0
