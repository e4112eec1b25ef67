"""Opens a page in the user's browser and receives what the page sends back."""

import asyncio
import os
import sys
import threading
import webbrowser
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, cast
from urllib.parse import parse_qsl, urlsplit

from agent_tui.cli.output import write_text
from agent_tui.errors import UsageError
from agent_tui.safe_paths import keep_trusted
from agent_tui.safe_text import safe_text

WAIT_S: Final = 300.0
"""How long to wait for the user, in seconds."""

_MAX_REQUEST_BYTES = 16_000
_MAX_LINE_BYTES = 4_096
_RECEIVED = (HTTPStatus.OK, b"agent-tui received the answer. You can close this page.\n")
_REFUSED = (HTTPStatus.BAD_REQUEST, b"This is not the answer. agent-tui still waits for it.\n")


@dataclass(frozen=True, slots=True)
class Callback:
    """An address on this machine that a page redirects the browser to.

    Attributes:
        port: The port on loopback; the path is ``/callback``.
        came: The query of the browser's request, once it is the answer.
    """

    port: int
    came: "asyncio.Future[Mapping[str, str]]"

    async def wait_for_values(self, terminal: int = 0) -> Mapping[str, str]:
        """Wait for what the page gives: a ``code`` or an ``error``, and further values.

        The browser delivers it, or the user pastes the address or just the code if the browser is
        on another machine: whichever comes first.

        Args:
            terminal: The descriptor the user may paste into.
        """
        pasted = asyncio.ensure_future(_read_line(terminal))
        try:
            await asyncio.wait((self.came, pasted), return_when=asyncio.FIRST_COMPLETED)
            return query_in(pasted.result()) if pasted.done() else self.came.result()
        finally:
            pasted.cancel()


def show_page(page: str) -> None:
    """Print the page where the user grants access, and open it if there is a browser."""
    write_text(
        f"Allow access on this page:\n\n{safe_text(page, keep_newlines=False)}\n\n"
        "If the browser is on another machine, it ends at an address that it cannot open. Paste "
        "that\naddress here and press Enter. Ctrl+C cancels.\n"
    )
    if has_browser(os.environ, sys.platform):
        # It looks its programs up on our own PATH.
        os.environ["PATH"] = keep_trusted(os.environ.get("PATH"))
        # In a thread: a browser in the foreground returns only when the user closes it.
        threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()


def has_browser(environ: Mapping[str, str], platform: str) -> bool:
    """Whether a graphical browser can open, or the user named one. Others take the terminal."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return platform == "darwin" or any(environ.get(name) for name in names)


def query_in(pasted: str) -> Mapping[str, str]:
    """The query of a pasted address; text without a query counts as the code."""
    return dict(parse_qsl(urlsplit(pasted).query)) or {"code": pasted}


@asynccontextmanager
async def listening_callback(
    port: int = 0, is_answer: Callable[[Mapping[str, str]], bool] = lambda _: True
) -> AsyncGenerator[Callback]:
    """Listen for the browser until the block ends.

    Any program and any page may call the address: what isn't the answer is refused.

    Args:
        port: Where to listen; 0 for any free port.
        is_answer: Whether a query with a ``code`` or an ``error`` is the answer.

    Raises:
        UsageError: Another program listens there.
    """
    came: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
    try:
        server = await asyncio.start_server(
            lambda reader, writer: _take(reader, writer, came, is_answer), "127.0.0.1", port
        )
    except OSError as error:
        raise UsageError(
            f"The port {port} cannot be used: {os.strerror(error.errno or 0)}."
        ) from error
    try:
        yield Callback(cast(int, server.sockets[0].getsockname()[1]), came)
    finally:
        server.close()


async def _read_line(terminal: int) -> str:
    """The next line typed at the descriptor `terminal`; never returns if it is not a terminal."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str] = loop.create_future()
    if not os.isatty(terminal):
        return await typed
    loop.add_reader(terminal, lambda: _take_line(terminal, typed))
    try:
        return await typed
    finally:
        loop.remove_reader(terminal)


def _take_line(terminal: int, typed: "asyncio.Future[str]") -> None:
    """Take one line from the terminal; an empty line or the end of input is ignored."""
    line = os.read(terminal, _MAX_LINE_BYTES).decode("utf-8", "replace").strip()
    if line and not typed.done():
        typed.set_result(line)


async def _take(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    came: "asyncio.Future[Mapping[str, str]]",
    is_answer: Callable[[Mapping[str, str]], bool],
) -> None:
    """Take what the browser delivers; refuse any other request to this port."""
    with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        line = (await reader.readline())[:_MAX_REQUEST_BYTES].decode("ascii", "replace")
        target = urlsplit(line.split(" ")[1] if line.count(" ") == 2 else "")
        brought = dict(parse_qsl(target.query))
        has_outcome = target.path == "/callback" and ("code" in brought or "error" in brought)
        is_taken = has_outcome and is_answer(brought)
        status, page = _RECEIVED if is_taken else _REFUSED
        head = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Type: text/plain\r\n"
        writer.write(f"{head}Connection: close\r\nContent-Length: {len(page)}\r\n\r\n".encode())
        writer.write(page)
        await writer.drain()
        if is_taken and not came.done():
            came.set_result(brought)
    writer.close()
