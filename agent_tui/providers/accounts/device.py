"""Accounts that the user signs in to with a code on a page, in any browser."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agent_tui.errors import AgentTuiError
from agent_tui.messages import JsonObject
from agent_tui.providers.wires.parts import as_object
from agent_tui.safe_text import safe_text

if TYPE_CHECKING:  # takes a tenth of a second, and only signing in needs it
    import httpx


_REQUEST_TIMEOUT_S = 30.0
_MORE_SLOWLY_S = 5.0
"""Seconds that RFC 8628, 3.5, adds to the interval if a service asks to slow down."""


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


@dataclass(frozen=True, slots=True)
class Pending:
    """The user has not entered the code yet."""

    wants_slower: bool = False


def how_to_enter(code: DeviceCode, title: str) -> str:
    """Instructions for signing in to the account called `title` with `code`."""
    page, user_code = (safe_text(text, keep_newlines=False) for text in (code.page, code.user_code))
    return (
        f"To sign in to {title}, open\n\n    {page}\n\nand enter\n\n    {user_code}\n\n"
        f"The code is valid for {ceil(code.expires_in_s / 60)} min. Do not share it."
    )


class DeviceService(Protocol):
    """A service that issues codes (RFC 8628, or its own equivalent)."""

    async def new_code(self, http: "httpx.AsyncClient") -> DeviceCode:
        """Request a new code.

        Raises:
            SignInError: The service issues none.
        """
        ...

    async def tokens(self, http: "httpx.AsyncClient", code: DeviceCode) -> JsonObject | Pending:
        """The tokens for `code`, or `Pending` until the user has entered it.

        Raises:
            SignInError: The user refused, the code expired, or the account cannot be used.
        """
        ...

    def keep(self, tokens: JsonObject) -> None:
        """Write `tokens` where litellm looks for them.

        Raises:
            OSError: They cannot be written.
        """
        ...


async def sign_in(service: DeviceService, show: Callable[[DeviceCode], object]) -> None:
    """Have the user enter a code in a browser, and store the resulting tokens.

    Args:
        service: The service to sign in to.
        show: Shows the user the code and the page.

    Raises:
        SignInError: The sign-in failed; says why.
        OSError: The tokens cannot be stored.
    """
    import httpx

    async with httpx.AsyncClient(timeout=_REQUEST_TIMEOUT_S) as http:
        try:
            code = await service.new_code(http)
        except httpx.HTTPError as error:
            raise unreachable(error) from error
        show(code)
        try:
            async with asyncio.timeout(code.expires_in_s):
                tokens = await _wait_for_tokens(service, http, code)
        except TimeoutError as error:
            raise SignInError("The code expired before it was entered.", "Try again.") from error
    service.keep(tokens)


async def _wait_for_tokens(
    service: DeviceService, http: "httpx.AsyncClient", code: DeviceCode
) -> JsonObject:
    import httpx

    interval_s = code.interval_s
    while True:
        await asyncio.sleep(interval_s)
        try:
            answer = await service.tokens(http, code)
        except httpx.TransportError:  # a short network failure must not waste the code
            continue
        if not isinstance(answer, Pending):
            return answer
        interval_s += _MORE_SLOWLY_S if answer.wants_slower else 0.0


def unreachable(error: "httpx.HTTPError") -> SignInError:
    """The error for a request that could not reach the service."""
    host = error.request.url.host
    return SignInError(f"Cannot reach {host}: {error or type(error).__name__}.", "Try again.")


def read_answer(response: "httpx.Response") -> JsonObject:
    """The JSON object in `response`; empty if it holds none."""
    try:
        return as_object(response.json())
    except ValueError:
        return {}


@dataclass(frozen=True, slots=True)
class Account:
    """An account whose tokens litellm renews.

    Attributes:
        name: Its name for ``agent-tui login``.
        provider: The prefix before the slash in the names of its models.
        title: Its usual name.
        files: The files that hold its tokens, given the environment.
        has_token: Whether the first of these files holds a token; it may have been revoked.
        service: The service to sign in with, given the environment.
    """

    name: str
    provider: str
    title: str
    files: Callable[[Mapping[str, str]], tuple[Path, ...]]
    has_token: Callable[[Path], bool]
    service: Callable[[Mapping[str, str]], DeviceService]

    def is_signed_in(self, environ: Mapping[str, str]) -> bool:
        """Whether a token is stored; only a request shows whether it is still valid."""
        return self.has_token(self.files(environ)[0])

    def sign_out(self, environ: Mapping[str, str]) -> bool:
        """Remove the stored tokens; returns whether there were any."""
        was_in = self.is_signed_in(environ)
        for file in self.files(environ):
            file.unlink(missing_ok=True)
        return was_in
