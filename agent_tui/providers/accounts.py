"""Accounts that are used instead of a key, and pages that give a key. Features bring both."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from typing import TypeAlias, cast

from agent_tui.errors import AgentTuiError
from agent_tui.feature import load_object, own_features
from agent_tui.safe_text import safe_text


class SignInError(AgentTuiError):
    """The sign-in failed; says why."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A code that the user enters on a page.

    Attributes:
        user_code: The code to enter.
        page: The address of the page.
        device_id: The service's id for this sign-in.
        interval_s: Seconds between two polls of the service.
        expires_in_s: Seconds until the code expires.
    """

    user_code: str
    page: str
    device_id: str
    interval_s: float
    expires_in_s: float


def how_to_enter(code: DeviceCode, title: str) -> str:
    """Instructions for signing in to the account called `title` with `code`."""
    page, user_code = (safe_text(text, keep_newlines=False) for text in (code.page, code.user_code))
    return (
        f"To sign in to {title}, open\n\n    {page}\n\nand enter\n\n    {user_code}\n\n"
        f"The code is valid for {ceil(code.expires_in_s / 60)} min. Do not share it."
    )


SignIn: TypeAlias = Callable[[Mapping[str, str], Callable[[DeviceCode], object]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Account:
    """An account whose models can be used without a key.

    Attributes:
        name: Its name for ``agent-tui login``.
        provider: The prefix before the slash in the names of its models.
        title: Its usual name.
        files: The files that hold its tokens, given the environment.
        has_token: Whether the first of these files holds a token; it may have been revoked.
        sign_in: Signs in and stores the tokens, given the environment and a function that shows
            the user the code. Raises a `SignInError`, or an `OSError` if they cannot be stored.
        folder_variable: The variable that names the folder of `files`.
    """

    name: str
    provider: str
    title: str
    files: Callable[[Mapping[str, str]], tuple[Path, ...]]
    has_token: Callable[[Path], bool]
    sign_in: SignIn
    folder_variable: str

    def is_signed_in(self, environ: Mapping[str, str]) -> bool:
        """Whether a token is stored; only a request shows whether it is still valid."""
        return self.has_token(self.files(environ)[0])

    def sign_out(self, environ: Mapping[str, str]) -> bool:
        """Remove the stored tokens; returns whether there were any."""
        was_in = self.is_signed_in(environ)
        for file in self.files(environ):
            file.unlink(missing_ok=True)
        return was_in


@dataclass(frozen=True, slots=True)
class KeyPage:
    """A page where the user allows a new key.

    Attributes:
        provider: The provider of the key.
        fetch: Opens the page and returns the key. Raises an `AgentTuiError`.
    """

    provider: str
    fetch: Callable[[], Awaitable[str]]


@cache
def own_accounts() -> Mapping[str, Account]:
    """The accounts that features of the program bring, by the provider of their models."""
    names = (name for feature in own_features() for name in feature.accounts)
    accounts = cast("Iterator[Account]", map(load_object, names))
    return {account.provider: account for account in accounts}


@cache
def own_key_pages() -> Mapping[str, KeyPage]:
    """The pages that features of the program bring, by provider."""
    names = (name for feature in own_features() for name in feature.key_pages)
    pages = cast("Iterator[KeyPage]", map(load_object, names))
    return {page.provider: page for page in pages}


def login_command(account: Account) -> str:
    """The command with which the user signs in."""
    return f"agent-tui login {account.name}"


async def sign_in_to(
    account: Account, environ: Mapping[str, str], show: Callable[[DeviceCode], object]
) -> None:
    """Sign in to `account`.

    Args:
        account: The account.
        environ: Says where it stores its tokens.
        show: Shows the user the code and the page.

    Raises:
        AgentTuiError: The sign-in failed; says why.
    """
    try:
        await account.sign_in(environ, show)
    except OSError as error:
        raise AgentTuiError(f"Cannot store the sign-in to {account.title}: {error}.") from error
