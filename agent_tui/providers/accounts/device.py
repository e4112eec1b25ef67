"""Signing in with a code that the person enters at a page, in any browser."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Protocol, cast

from agent_tui.errors import AgentTuiError
from agent_tui.messages import JsonObject
from agent_tui.safe_text import safe_text

if TYPE_CHECKING:  # a tenth of a second that only signing in needs
    import httpx

_REQUEST_TIMEOUT_S = 30.0
_MORE_SLOWLY_S = 5.0
"""What RFC 8628, 3.5, adds to the interval where a service asks for more time."""


class SignInError(AgentTuiError):
    """Nobody was signed in; says why."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A code that the person enters at a page.

    Attributes:
        user_code: What they enter.
        page: Where.
        device_id: What the service knows this sign-in by.
        interval_s: How often the service may be asked.
        expires_in_s: How long the code is good.
    """

    user_code: str
    page: str
    device_id: str
    interval_s: float
    expires_in_s: float


@dataclass(frozen=True, slots=True)
class Pending:
    """The person has not entered the code yet."""

    wants_slower: bool = False


def how_to_enter(code: DeviceCode, title: str) -> str:
    """What the user does with `code` to sign in to the account called `title`."""
    page, user_code = (safe_text(text, keep_newlines=False) for text in (code.page, code.user_code))
    return (
        f"To sign in to {title}, open\n\n    {page}\n\nand enter\n\n    {user_code}\n\n"
        f"The code is valid for {ceil(code.expires_in_s / 60)} min. Do not share it."
    )


class DeviceService(Protocol):
    """A service that gives codes (RFC 8628, or what it has in its place)."""

    async def new_code(self, http: "httpx.AsyncClient") -> DeviceCode:
        """A code.

        Raises:
            SignInError: it gives none.
        """
        ...

    async def tokens(self, http: "httpx.AsyncClient", code: DeviceCode) -> JsonObject | Pending:
        """What it gives once the person has entered `code`.

        Raises:
            SignInError: the person refused, the code ran out, or the account is of no use.
        """
        ...

    def keep(self, tokens: JsonObject) -> None:
        """Write `tokens` where litellm looks for them.

        Raises:
            OSError: they cannot be written.
        """
        ...


async def sign_in(service: DeviceService, show: Callable[[DeviceCode], object]) -> None:
    """Have the person enter a code in a browser, and keep what that gives.

    Args:
        service: Where.
        show: Tells the person the code and the page.

    Raises:
        SignInError: It did not come to that; says why.
        OSError: What came cannot be kept.
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
                tokens = await _entered(service, http, code)
        except TimeoutError as error:
            raise SignInError("The code expired before it was entered.", "Try again.") from error
    service.keep(tokens)


async def _entered(
    service: DeviceService, http: "httpx.AsyncClient", code: DeviceCode
) -> JsonObject:
    import httpx

    interval_s = code.interval_s
    while True:
        await asyncio.sleep(interval_s)
        try:
            answer = await service.tokens(http, code)
        except httpx.TransportError:  # a moment without a network must not waste the code
            continue
        if not isinstance(answer, Pending):
            return answer
        interval_s += _MORE_SLOWLY_S if answer.wants_slower else 0.0


def unreachable(error: "httpx.HTTPError") -> SignInError:
    """What a request that failed means."""
    host = error.request.url.host
    return SignInError(f"Cannot reach {host}: {error or type(error).__name__}.", "Try again.")


def answered(response: "httpx.Response") -> JsonObject:
    """The object that `response` holds; an empty one where it holds none."""
    try:
        return as_object(response.json())
    except ValueError:
        return {}


def as_object(value: object) -> JsonObject:
    """`value`, which was JSON, if it is an object; else an empty one."""
    return cast(JsonObject, value) if isinstance(value, dict) else {}
