"""Sends the tokens of a login with each request, and renews them. Imports the SDK's HTTP client."""

import asyncio
from collections.abc import AsyncGenerator
from http import HTTPStatus
from pathlib import Path
from typing import Final

import httpx2

from agent_tui.features.mcp.oauth import oauth_provider

_NO_PAGE: Final = "http://127.0.0.1/callback"
_LONG_AGO: Final = 1.0


class StoredLogin(httpx2.Auth):
    """The login in a file, which is read anew for each request: the user may log in meanwhile.

    The SDK's client would also discover, register and ask in a browser. Nobody can answer here, so
    only its renewal is used: what the server then says is the answer.

    Args:
        url: The server's address.
        tokens: The file with the login's tokens.
    """

    def __init__(self, url: str, tokens: Path) -> None:
        self._url = url
        self._tokens = tokens
        self._renewing = asyncio.Lock()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send `request` with the token; if it is refused, once more with a renewed one."""
        for is_refused in (False, True):
            async with self._renewing:
                provider = oauth_provider(self._url, self._tokens, _NO_PAGE)
                if is_refused:
                    provider.context.token_expiry_time = _LONG_AGO
                flow = provider.async_auth_flow(request)
                try:
                    sent = await anext(flow)
                    while sent is not request:
                        response = yield sent
                        sent = await flow.asend(response)
                finally:
                    await flow.aclose()
            response = yield request
            if response.status_code != HTTPStatus.UNAUTHORIZED:
                return
            if not provider.context.can_refresh_token():
                return
