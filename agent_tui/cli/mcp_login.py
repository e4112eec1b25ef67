"""``agent-tui mcp login``: gets access to an MCP server through the user's browser."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent_tui.cli.browser import WAIT_S, Callback, listening_callback
from agent_tui.errors import UsageError
from agent_tui.installation import install_command
from agent_tui.tools.mcp.oauth import innermost_reason, oauth_provider

if TYPE_CHECKING:  # takes a second to import, and the extra may be missing
    from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider


async def log_in(url: str, tokens: Path, show: Callable[[str], object]) -> None:
    """Have the user grant access, and store the tokens.

    Args:
        url: The server's address.
        tokens: The file to store them in. It must not exist: it could name a client with the port
            of another login.
        show: Opens a page for the user.

    Raises:
        UsageError: The login failed; says why.
    """

    async def redirect(page: str) -> None:
        if urlsplit(page).scheme not in ("https", "http"):
            raise UsageError(f"The server gave no login page that can be opened: {page[:100]}")
        show(page)

    try:
        async with listening_callback() as callback, asyncio.timeout(WAIT_S):
            await _connect(url, _provider(url, tokens, redirect, callback))
    except ModuleNotFoundError as error:
        raise UsageError("Logging in requires the package mcp.", install_command("mcp")) from error
    except TimeoutError as error:
        raise UsageError(f"The browser did not answer within {WAIT_S:g} s.") from error
    except Exception as error:
        raise UsageError(f"Login failed: {innermost_reason(error)}") from error


def _provider(
    url: str, tokens: Path, redirect: Callable[[str], Awaitable[None]], callback: Callback
) -> "OAuthClientProvider":
    from mcp.client.auth import AuthorizationCodeResult

    async def code() -> "AuthorizationCodeResult":
        brought = await callback.wait_for_values()
        return AuthorizationCodeResult(
            code=brought.get("code", ""), state=brought.get("state"), iss=brought.get("iss")
        )

    return oauth_provider(url, tokens, f"http://127.0.0.1:{callback.port}/callback", redirect, code)


async def _connect(url: str, provider: "OAuthClientProvider") -> None:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(auth=provider) as client,
        Client(streamable_http_client(url, http_client=client)),
    ):
        pass
