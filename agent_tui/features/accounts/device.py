"""Signing in with a code that the user enters on a page, in any browser."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent_tui.messages import JsonObject
from agent_tui.providers.accounts import DeviceCode, SignInError
from agent_tui.providers.faults.classify import connection_detail
from agent_tui.providers.faults.fault import fault_of
from agent_tui.providers.wires.parts import as_object

if TYPE_CHECKING:  # takes a tenth of a second, and only signing in needs it
    import httpx


_REQUEST_TIMEOUT_S = 30.0
_MORE_SLOWLY_S = 5.0
"""Seconds that RFC 8628, 3.5, adds to the interval if a service asks to slow down."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The user has not entered the code yet."""

    wants_slower: bool = False


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
    why = connection_detail(fault_of(error, ())) or f"{error or type(error).__name__}."
    return SignInError(f"Cannot reach {host}: {why}", "Check your network connection.")


def read_answer(response: "httpx.Response") -> JsonObject:
    """The JSON object in `response`; empty if it holds none."""
    try:
        return as_object(response.json())
    except ValueError:
        return {}
