"""``agent-tui mcp login``: allow agent-tui at an MCP server, in the person's browser."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, cast
from urllib.parse import urlsplit

from agent_tui.cli.browser import WAIT_S, Callback, listening_callback
from agent_tui.errors import UsageError
from agent_tui.installation import install_command
from agent_tui.tools.mcp.oauth import oauth_provider


class _Shared(Protocol):
    def AuthorizationCodeResult(
        self, *, code: str, state: str | None, iss: str | None
    ) -> object: ...


class _Sdk(Protocol):
    def Client(self, server: object) -> AbstractAsyncContextManager[object]: ...


class _Transports(Protocol):
    def streamable_http_client(self, url: str, *, http_client: object) -> object: ...


class _Http(Protocol):
    def AsyncClient(self, *, auth: object) -> AbstractAsyncContextManager[object]: ...


async def log_in(url: str, tokens: Path, show: Callable[[str], object]) -> None:
    """Have the person allow it, and keep the tokens.

    Args:
        url: Where the server is.
        tokens: The file they are kept in. There must be none: it could name a client with the
            port of another login.
        show: Brings the person to a page.

    Raises:
        UsageError: It did not come to that; says why.
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
        raise UsageError(f"Login failed: {_innermost(error)}") from error


def _provider(
    url: str, tokens: Path, redirect: Callable[[str], Awaitable[None]], callback: Callback
) -> object:
    shared = cast(_Shared, importlib.import_module("mcp.shared.auth"))

    async def code() -> object:
        brought = await callback.brought()
        return shared.AuthorizationCodeResult(
            code=brought.get("code", ""), state=brought.get("state"), iss=brought.get("iss")
        )

    return oauth_provider(url, tokens, f"http://127.0.0.1:{callback.port}/callback", redirect, code)


async def _connect(url: str, provider: object) -> None:
    sdk = cast(_Sdk, importlib.import_module("mcp"))
    transports = cast(_Transports, importlib.import_module("mcp.client.streamable_http"))
    http = cast(_Http, importlib.import_module("httpx2"))
    async with (
        http.AsyncClient(auth=provider) as client,
        sdk.Client(transports.streamable_http_client(url, http_client=client)),
    ):
        pass


def _innermost(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        grouped = cast("BaseExceptionGroup[BaseException]", error)
        return _innermost(grouped.exceptions[0])
    return str(error) or type(error).__name__
