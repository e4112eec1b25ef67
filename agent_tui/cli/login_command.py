"""``agent-tui login``: signs in to accounts, stores keys, and lists both.

At OpenRouter it signs in in the browser (OAuth with PKCE), here or on another machine; the result
is a key of the user's account.
"""

import argparse
import asyncio
import base64
import hashlib
import os
import secrets
from collections.abc import Callable, Sequence
from typing import Final, cast
from urllib.parse import urlencode

from agent_tui.cli.browser import WAIT_S, listening_callback, show_page
from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.key_store import keep, key_store, read_key
from agent_tui.cli.output import complain, write_text
from agent_tui.errors import AgentTuiError, UsageError
from agent_tui.providers.accounts.device import (
    Account,
    DeviceCode,
    SignInError,
    how_to_enter,
    read_answer,
    sign_in,
    unreachable,
)
from agent_tui.providers.accounts.table import ACCOUNTS
from agent_tui.providers.kept_keys import KEEPABLE, SystemKeyring
from agent_tui.providers.keys import KEY_VARIABLES
from agent_tui.providers.wires.parts import text_at
from agent_tui.safe_text import safe_text

_DESCRIPTION = """\
Sign in to an account to use its models, or store a provider's key.
Without NAME, list your keys and accounts.

  agent-tui login copilot, chatgpt   shows a code to enter on a page
  agent-tui login openrouter         opens a page where you allow a new key
  agent-tui login openai, ...        asks for a key, or reads it from standard
                                     input; the key is not shown

Keys are stored in a file that only you can read, or in the system's keyring.
A key in the environment is used first."""

NAMES = (*(account.name for account in ACCOUNTS.values()), *KEEPABLE)


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui login``."""
    parser = subcommand_parser("login", _DESCRIPTION)
    parser.add_argument("name", nargs="?", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument(
        "--keyring",
        action="store_true",
        dest="in_keyring",
        help="store the key in the system's keyring",
    )
    parser.add_argument(
        "--key",
        action="store_true",
        dest="has_key",
        help="with openrouter: enter a key instead of signing in",
    )
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui login`` with the arguments after that word; returns the exit code.

    Raises:
        AgentTuiError: The sign-in failed, or no key was stored.
    """
    arguments = build_parser().parse_args(list(argv))
    name, in_keyring = cast("str | None", arguments.name), cast(bool, arguments.in_keyring)
    try:
        if name is None:
            _list()
        elif (account := account_called(name)) is not None:
            _sign_in(account, in_keyring=in_keyring)
        else:
            _have_key_kept(name, in_keyring=in_keyring, has_key=arguments.has_key)
    except KeyboardInterrupt:
        complain("Cancelled. Nothing was stored.")
        return 130
    return 0


def account_called(name: str) -> Account | None:
    """The account of that name; None if it is a provider with a key."""
    return next((account for account in ACCOUNTS.values() if account.name == name), None)


def _list() -> None:
    rows = [
        (account.name, f"signed in; models are named {account.provider}/...")
        for account in ACCOUNTS.values()
        if account.is_signed_in(os.environ)
    ]
    places = key_store().places()
    for provider, variables in KEY_VARIABLES.items():
        if variable := next((name for name in variables if name in os.environ), ""):
            also = f"; the one in {places[provider]} is not used" if provider in places else ""
            rows.append((provider, f"a key in the variable {variable}{also}"))
        elif provider in places:
            rows.append((provider, f"a key in {places[provider]}"))
    width = max((len(name) for name, _ in rows), default=0)
    none = "No keys, and not signed in to any account. See agent-tui login --help."
    lines = [f"{name:{width}}  {safe_text(where, keep_newlines=False)}" for name, where in rows]
    write_text("\n".join(lines or [none]) + "\n")


async def sign_in_to(account: Account, show: Callable[[DeviceCode], object]) -> None:
    """Sign in to `account`.

    Args:
        account: The account.
        show: Shows the user the code and the page.

    Raises:
        AgentTuiError: The sign-in failed; says why.
    """
    try:
        await sign_in(account.service(os.environ), show)
    except OSError as error:
        raise AgentTuiError(f"Cannot store the sign-in to {account.title}: {error}.") from error


def _sign_in(account: Account, *, in_keyring: bool) -> None:
    if in_keyring:
        raise UsageError(
            "--keyring works with keys only.",
            f"The sign-in to {account.title} is stored in a file: remove --keyring.",
        )

    def show(code: DeviceCode) -> None:
        write_text(f"{how_to_enter(code, account.title)} Waiting; Ctrl+C cancels.\n")

    asyncio.run(sign_in_to(account, show))
    write_text(f"Signed in to {account.title}. Its models are named {account.provider}/...\n")


def _have_key_kept(provider: str, *, in_keyring: bool, has_key: bool) -> None:
    if in_keyring:
        SystemKeyring()  # fails before the user fetches a key that cannot be stored
    if provider == "openrouter" and not has_key:
        key = asyncio.run(openrouter_key(OpenRouterSignIn(), show_page))
    else:
        key = read_key(KEEPABLE[provider])
    place = keep(provider, key, in_keyring=in_keyring)
    write_text(safe_text(f"Stored the {provider} key in {place}.") + "\n")
    if variable := next((name for name in KEY_VARIABLES[provider] if name in os.environ), ""):
        complain(f"{variable} is set: it is used instead of the stored key.")


_HOME: Final = "https://openrouter.ai"
_REQUEST_TIMEOUT_S: Final = 30.0


class OpenRouterSignIn:
    """One sign-in. Only the process that began it can exchange the page's code for a key.

    Args:
        home: The address of OpenRouter.
    """

    def __init__(self, home: str = _HOME) -> None:
        self._home = home
        self._verifier = secrets.token_urlsafe(48)

    def page(self, callback_url: str) -> str:
        """The page where the user grants access; it then sends the code to `callback_url`."""
        digest = hashlib.sha256(self._verifier.encode("ascii")).digest()
        challenge = base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")
        asked = {
            "callback_url": callback_url,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{self._home}/auth?{urlencode(asked)}"

    async def key(self, code: str) -> str:
        """Exchange `code` for a key.

        Raises:
            SignInError: OpenRouter issues none.
        """
        import httpx

        asked = {
            "code": code,
            "code_verifier": self._verifier,
            "code_challenge_method": "S256",
        }
        async with httpx.AsyncClient(timeout=_REQUEST_TIMEOUT_S) as http:
            try:
                response = await http.post(f"{self._home}/api/v1/auth/keys", json=asked)
            except httpx.HTTPError as error:
                raise unreachable(error) from error
        if key := text_at(read_answer(response), "key"):
            return key
        raise SignInError(
            f"OpenRouter returned no key (status {response.status_code}).", "Try again."
        )


async def openrouter_key(
    sign_in: OpenRouterSignIn, show: Callable[[str], object], terminal: int = 0
) -> str:
    """Get a key of the user's account.

    Args:
        sign_in: The sign-in.
        show: Opens a page for the user.
        terminal: The descriptor the user may paste into.

    Raises:
        AgentTuiError: The sign-in failed; says why.
    """
    async with listening_callback() as callback:
        show(sign_in.page(f"http://localhost:{callback.port}/callback"))
        try:
            async with asyncio.timeout(WAIT_S):
                brought = await callback.wait_for_values(terminal)
        except TimeoutError as error:
            raise AgentTuiError(f"No answer within {WAIT_S:g} s.", "Try again.") from error
    if not (code := brought.get("code", "")):
        raise AgentTuiError("Access was not allowed on the page.")
    return await sign_in.key(code)
