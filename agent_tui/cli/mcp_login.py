"""``agent-tui mcp login``: allow agent-tui at an MCP server, in the person's browser."""

import asyncio
import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Protocol, cast
from urllib.parse import parse_qsl, urlsplit

from agent_tui.errors import UsageError
from agent_tui.installation import install_command
from agent_tui.tools.mcp.oauth import oauth_provider

_WAIT_S = 300.0
_MAX_REQUEST_BYTES = 16_000
_PAGE = b"agent-tui has what it needs. You can close this page.\n"
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_PAGE), _PAGE)
)


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
    came: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
    listening = await asyncio.start_server(
        lambda reader, writer: _take(reader, writer, came), "127.0.0.1", 0
    )
    port = cast(int, listening.sockets[0].getsockname()[1])

    async def redirect(page: str) -> None:
        if urlsplit(page).scheme not in ("https", "http"):
            raise UsageError(f"The server names no page to log in at: {page[:100]}")
        show(page)

    try:
        shared = cast(_Shared, importlib.import_module("mcp.shared.auth"))

        async def callback() -> object:
            brought = await came
            return shared.AuthorizationCodeResult(
                code=brought.get("code", ""), state=brought.get("state"), iss=brought.get("iss")
            )

        provider = oauth_provider(
            url, tokens, f"http://127.0.0.1:{port}/callback", redirect, callback
        )
        async with asyncio.timeout(_WAIT_S):
            await _connect(url, provider)
    except ModuleNotFoundError as error:
        raise UsageError("Logging in needs the package mcp.", install_command("mcp")) from error
    except TimeoutError as error:
        raise UsageError(f"Nothing came back from the browser in {_WAIT_S:g} s.") from error
    except Exception as error:
        raise UsageError(f"The login failed: {_innermost(error)}") from error
    finally:
        listening.close()


async def _connect(url: str, provider: object) -> None:
    sdk = cast(_Sdk, importlib.import_module("mcp"))
    transports = cast(_Transports, importlib.import_module("mcp.client.streamable_http"))
    http = cast(_Http, importlib.import_module("httpx2"))
    async with (
        http.AsyncClient(auth=provider) as client,
        sdk.Client(transports.streamable_http_client(url, http_client=client)),
    ):
        pass


async def _take(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    came: "asyncio.Future[Mapping[str, str]]",
) -> None:
    """Take what the browser brings; anything else that comes to this port is passed over."""
    with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        line = (await reader.readline())[:_MAX_REQUEST_BYTES].decode("ascii", "replace")
        target = urlsplit(line.split(" ")[1] if line.count(" ") == 2 else "")
        brought = dict(parse_qsl(target.query))
        if target.path == "/callback" and ("code" in brought or "error" in brought):
            writer.write(_ANSWER)
            await writer.drain()
            if not came.done():
                came.set_result(brought)
    writer.close()


def _innermost(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        grouped = cast("BaseExceptionGroup[BaseException]", error)
        return _innermost(grouped.exceptions[0])
    return str(error) or type(error).__name__
