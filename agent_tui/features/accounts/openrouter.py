"""OpenRouter: a key of the user's account, allowed in the browser (OAuth with PKCE).

The browser may be on another machine.
"""

import asyncio
import base64
import hashlib
import secrets
from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

from agent_tui.cli.browser import WAIT_S, listening_callback, show_page
from agent_tui.errors import AgentTuiError
from agent_tui.features.accounts.device import read_answer, unreachable
from agent_tui.providers.accounts import KeyPage, SignInError
from agent_tui.providers.wires.parts import text_at

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


async def _fetch() -> str:
    return await openrouter_key(OpenRouterSignIn(), show_page)


OPENROUTER: Final = KeyPage("openrouter", _fetch)
