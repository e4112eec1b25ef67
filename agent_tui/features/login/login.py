"""``agent-tui login``: stores keys, signs in to the accounts of features, and lists both."""

import argparse
import asyncio
import os
import textwrap
from collections.abc import Iterator, Sequence
from typing import cast

from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.key_store import keep, key_store, login_names, read_key
from agent_tui.cli.output import complain, write_text
from agent_tui.errors import UsageError
from agent_tui.features.login.named import DEFAULT, NamedAccounts, accounts_folder
from agent_tui.providers.accounts import (
    Account,
    DeviceCode,
    KeyPage,
    how_to_enter,
    own_accounts,
    own_key_pages,
    sign_in_to,
)
from agent_tui.providers.kept_keys import KEEPABLE, NAME_RULE, SystemKeyring, is_account_name
from agent_tui.providers.keys import KEY_VARIABLES
from agent_tui.safe_text import safe_text

_ABOUT = """\
Sign in to an account to use its models, or store a provider's key.
Without NAME, list your keys and accounts.

{ways}

Keys are stored in a file that only you can read, or in the system's keyring.
A key in the environment is used first."""


def _ways() -> Iterator[str]:
    rows = (
        (", ".join(one.name for one in own_accounts().values()), "shows a code to enter on a page"),
        (", ".join(own_key_pages()), "opens a page where you allow a new key"),
        ("NAME", "asks for a key, or reads it from standard"),
    )
    yield from (f"  {f'agent-tui login {names}':<35}{does}" for names, does in rows if names)
    yield from textwrap.wrap(
        f"input; it is not shown. NAME is {', '.join(KEEPABLE)}.",
        80,
        initial_indent=" " * 37,
        subsequent_indent=" " * 37,
    )


def _description() -> str:
    return _ABOUT.format(ways="\n".join(_ways()))


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui login``."""
    parser = subcommand_parser("login", _description())
    names = login_names()
    parser.add_argument("name", nargs="?", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument(
        "--keyring",
        action="store_true",
        dest="in_keyring",
        help="store the key in the system's keyring",
    )
    parser.add_argument(
        "--as",
        dest="account",
        metavar="ACCOUNT",
        help="a name for one of several accounts, such as work",
    )
    parser.set_defaults(has_key=False)
    if own_key_pages():
        parser.add_argument(
            "--key",
            action="store_true",
            dest="has_key",
            help=f"with {', '.join(own_key_pages())}: enter a key instead of signing in",
        )
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui login`` with the arguments after that word; returns the exit code.

    Raises:
        AgentTuiError: The sign-in failed, or no key was stored.
    """
    arguments = build_parser().parse_args(list(argv))
    name, in_keyring = cast("str | None", arguments.name), cast(bool, arguments.in_keyring)
    called = read_account_name(arguments.account)
    try:
        if name is None:
            _list()
        elif (account := account_called(name)) is not None:
            _sign_in(account, called, in_keyring=in_keyring)
        else:
            _have_key_kept(name, called, in_keyring=in_keyring, has_key=arguments.has_key)
    except KeyboardInterrupt:
        complain("Cancelled. Nothing was stored.")
        return 130
    return 0


def read_account_name(given: str | None) -> str:
    """The name of ``--as``; empty for the usual account.

    Raises:
        UsageError: No account can have it.
    """
    if given in (None, DEFAULT):
        return ""
    if not is_account_name(given):
        raise UsageError(f"No account can be called {given!r}.", f"A name has {NAME_RULE}.")
    return given


def named_accounts() -> NamedAccounts:
    """The user's accounts."""
    return NamedAccounts(os.environ, key_store(), accounts_folder())


def account_called(name: str) -> Account | None:
    """The account of that name; None if it is a provider with a key."""
    return next((account for account in own_accounts().values() if account.name == name), None)


def _list() -> None:
    rows = [
        (account.name, f"signed in; models are named {account.provider}/...")
        for account in own_accounts().values()
        if account.is_signed_in(os.environ)
    ]
    accounts = named_accounts()
    for provider in accounts.providers:
        account = own_accounts().get(provider)
        label = account.name if account else provider
        rows += [
            (f"{label} --as {name}", "signed in" if account else "a stored key")
            for name in accounts.names(provider)
            if name != DEFAULT
        ]
    places = key_store().places()
    for provider, variables in KEY_VARIABLES.items():
        if variable := next((name for name in variables if name in os.environ), ""):
            also = f"; the one in {places[provider]} is not used" if provider in places else ""
            rows.append((provider, f"a key in the variable {variable}{also}"))
        elif provider in places:
            rows.append((provider, f"a key in {places[provider]}"))
    width = max((len(name) for name, _ in rows), default=0)
    none = "No keys, and not signed in to any account."
    lines = [f"{name:{width}}  {safe_text(where, keep_newlines=False)}" for name, where in rows]
    write_text("\n".join([*(lines or [none]), "", "You can use:", *_ways()]) + "\n")


async def _fetch_key(page: KeyPage) -> str:
    return await page.fetch()


def _sign_in(account: Account, called: str, *, in_keyring: bool) -> None:
    if in_keyring:
        raise UsageError(
            "--keyring works with keys only.",
            f"The sign-in to {account.title} is stored in a file: remove --keyring.",
        )

    def show(code: DeviceCode) -> None:
        write_text(f"{how_to_enter(code, account.title)} Waiting; Ctrl+C cancels.\n")

    environ = named_accounts().environ_of(account, called or DEFAULT)
    asyncio.run(sign_in_to(account, environ, show))
    named = f" as {called}" if called else ""
    write_text(
        f"Signed in to {account.title}{named}. Its models are named {account.provider}/...\n"
    )


def _have_key_kept(provider: str, called: str, *, in_keyring: bool, has_key: bool) -> None:
    if in_keyring:
        SystemKeyring()  # fails before the user fetches a key that cannot be stored
    page = None if has_key else own_key_pages().get(provider)
    key = asyncio.run(_fetch_key(page)) if page is not None else read_key(KEEPABLE[provider])
    place = keep(provider, key, in_keyring=in_keyring, name=called)
    named = f" of the account {called}" if called else ""
    write_text(safe_text(f"Stored the {provider} key{named} in {place}.") + "\n")
    if called:
        return
    if variable := next((name for name in KEY_VARIABLES[provider] if name in os.environ), ""):
        complain(f"{variable} is set: it is used instead of the stored key.")
