"""The wall's network gate: an HTTP proxy that decides by host name.

It listens on a unix socket, or on the machine's loopback where that is the wall's; there it serves
only sockets of that wall.

Names are resolved outside, once, and the connection is made to the address that was checked. TLS
stays between the command and the host: nothing in it is read, so everything is allowed on an
allowed host.
"""

import asyncio
import base64
import secrets
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from agent_tui.errors import ToolError
from agent_tui.features.sandbox.made_sockets import MadeSockets, inode_of_peer
from agent_tui.features.sandbox.proxy_request import (
    MOST_HEAD_BYTES,
    BadRequest,
    ProxyRequest,
    Target,
    chunk_bytes,
    read_head,
)
from agent_tui.tools.addresses import Resolve, check_addresses, check_host, resolve

_HEAD_WITHIN_S = 30.0
_CONNECTED_WITHIN_S = 20.0
_MOST_CONNECTIONS = 256
_MOST_RECORDS = 200
_READ_BYTES = 65_536
_UNREACHABLE: Final = 424
"""What programs do not try again: after 502, npm does so for 70 seconds. They print the reason."""

_LEAST_PORT, _PORTS = 20_000, 12_000
"""The range for the gate's port, below the ports that systems assign automatically."""

_NOTHING: Final[Mapping[str, str]] = {}
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_OF_PRIVATE: Final = (
    "If it has to, run the command with outside: true and why, which needs permission. "
    "The user can also allow such addresses with the setting fetch_private."
)
_ADVICE: Final = (
    "Do not try to get around it. Continue without, or tell the user what needs this host and why."
)


class Wanted(NamedTuple):
    """A connection that needs a decision.

    Attributes:
        target: A host and a port.
        is_read_only: Whether it comes from a read-only wall.
    """

    target: Target
    is_read_only: bool = False


Decide: TypeAlias = Callable[[Wanted], Awaitable[str]]
"""Returns why it is refused, as a phrase; empty if allowed. Cancelled if the command hangs up."""


def _tell_nobody(_target: Target, _why: str) -> None:
    pass


async def _refuse_all(_wanted: Wanted) -> str:
    return "no conversation is under way"


@dataclass(slots=True)
class ConnectionRecord:
    """A connection that a command requested. `refusal` says why it was not made.

    `sent` and `received` are bytes from the command's view, and grow while it lasts.
    """

    target: Target
    refusal: str = ""
    sent: int = 0
    received: int = 0
    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def count_sent(self, size: int) -> None:
        """Count bytes from the command."""
        self.sent += size

    def count_received(self, size: int) -> None:
        """Count bytes for the command."""
        self.received += size


class _Refusal(Exception):
    """The connection is refused: a status, the reason, and text only for the body.

    Programs print the status line on each retry, often several times.
    """

    def __init__(self, status: int, why: str, more: str = "") -> None:
        super().__init__(why)
        self.status, self.more = status, more


class NetworkGate:
    """Lets commands in walls reach the allowed hosts.

    Attributes:
        decide: Decides on a host; refuses all until it is set.
        tell_refusal: Called with each refusal: the target and the reason.
        tell_unreached: Called with each allowed target that was not reached, and the reason.
        port: Where commands reach the gate, on the loopback inside a wall.
        refusals: How many connections were refused.
    """

    def __init__(
        self,
        *,
        may_be_private: bool = False,
        resolve: Resolve = resolve,
        proxy_for: Callable[[Target], str] | None = None,
    ) -> None:
        """Create a gate that does not listen yet.

        Args:
            may_be_private: Whether this machine and private networks may be reached.
            resolve: Finds the addresses of hosts.
            proxy_for: The proxy for outgoing connections; by default the environment's.
        """
        self.decide: Decide = _refuse_all
        self.tell_refusal: Callable[[Target, str], None] = _tell_nobody
        self.tell_unreached: Callable[[Target, str], None] = _tell_nobody
        self.refusals = 0
        self.port = _LEAST_PORT + secrets.randbelow(_PORTS)
        self._may_be_private = may_be_private
        self._resolve = resolve
        self._proxy_for = proxy_for or _environments_proxy
        self._records: deque[ConnectionRecord] = deque(maxlen=_MOST_RECORDS)
        self._servers: dict[Path | MadeSockets, asyncio.Server] = {}
        self._serving = Relays()

    @property
    def records(self) -> tuple[ConnectionRecord, ...]:
        """The requested connections, newest first; old ones are dropped."""
        return tuple(reversed(self._records))

    def environ(
        self, given: Mapping[str, str] = _NOTHING, port: int | None = None
    ) -> dict[str, str]:
        """The variables that make programs inside use the gate, in addition to `given`.

        Args:
            given: The environment that they get otherwise.
            port: Where they reach it; by default `port`.
        """
        port = self.port if port is None else port
        proxy = f"http://127.0.0.1:{port}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        found = {each: proxy for name in names for each in (name, name.lower())}
        found |= dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(_LOOPBACK))
        found |= {"NODE_USE_ENV_PROXY": "1", "ELECTRON_GET_USE_PROXY": "1"}
        found |= {"YARN_HTTP_PROXY": proxy, "YARN_HTTPS_PROXY": proxy}
        java = " ".join(
            f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={port}"
            for scheme in ("http", "https")
        )
        for name in ("GRADLE_OPTS", "MAVEN_OPTS"):  # every JVM would print JAVA_TOOL_OPTIONS
            found[name] = " ".join(filter(None, (given.get(name), java)))
        return found

    async def serve(self, folder: Path, *, is_read_only: bool = False) -> None:
        """Listen on the socket ``proxy`` in `folder`, whose path is at most 100 bytes long.

        Args:
            folder: The folder of one wall.
            is_read_only: Whether that wall is read-only.
        """
        folders = [way for way in self._servers if isinstance(way, Path)]
        for left in [folder for folder in folders if not folder.exists()]:
            self.stop(left)
        self._servers[folder] = await asyncio.start_unix_server(
            lambda reader, writer: self._serving.add(
                self._serve(reader, writer, is_read_only=is_read_only)
            ),
            path=folder / "proxy",
            limit=MOST_HEAD_BYTES,
            backlog=_MOST_CONNECTIONS,
        )

    async def serve_on_loopback(self, made: MadeSockets, *, is_read_only: bool = False) -> int:
        """Listen on 127.0.0.1 for the sockets in `made`; returns the port.

        Args:
            made: The sockets of one wall, read as its launcher notes them.
            is_read_only: Whether that wall is read-only.
        """

        async def serve_own(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ends = (writer.get_extra_info(name) for name in ("peername", "sockname"))
            if made.has(await asyncio.to_thread(inode_of_peer, *ends)):
                await self._serve(reader, writer, is_read_only=is_read_only)
            else:
                writer.close()

        server = self._servers[made] = await asyncio.start_server(
            lambda reader, writer: self._serving.add(serve_own(reader, writer)),
            *("127.0.0.1", 0),
            limit=MOST_HEAD_BYTES,
            backlog=_MOST_CONNECTIONS,
        )
        asyncio.get_running_loop().add_reader(made, made.read)
        port: int = server.sockets[0].getsockname()[1]
        return port

    def stop(self, way: Path | MadeSockets) -> None:
        """Accept no more connections from the wall that has `way`."""
        if (server := self._servers.pop(way, None)) is not None:
            server.close()
        if isinstance(way, MadeSockets):
            asyncio.get_running_loop().remove_reader(way)

    def close(self) -> None:
        """End all connections and accept no more."""
        for way in tuple(self._servers):
            self.stop(way)
        self._serving.close()

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_read_only: bool,
    ) -> None:
        try:
            if self._serving.count > _MOST_CONNECTIONS:
                raise _Refusal(503, "too many connections at a time")
            await self._answer(reader, writer, is_read_only=is_read_only)
        except _Refusal as refusal:
            with suppress(OSError):
                writer.write(_answer(refusal))
                await writer.drain()
        except (OSError, EOFError, TimeoutError, BadRequest, asyncio.LimitOverrunError):
            pass  # one of the two is gone, or violates HTTP
        finally:
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_read_only: bool
    ) -> None:
        """Read and handle one request; anything the client sends after it is ignored."""
        try:
            async with asyncio.timeout(_HEAD_WITHIN_S):
                request = read_head(await reader.readuntil(b"\r\n\r\n"))
        except BadRequest as error:
            raise _Refusal(400, f"bad request: {error}") from error
        except asyncio.LimitOverrunError as error:
            raise _Refusal(
                400, "agent-tui's sandbox: the head of the request is too long"
            ) from error
        record = ConnectionRecord(request.target)
        self._records.append(record)
        try:
            await self._permit(request.target, reader, is_read_only=is_read_only)
            async with self._connect(request) as (far_reader, far_writer, through_proxy):
                if request.is_tunnel:
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    sending = pump(reader, far_writer, record.count_sent)
                else:
                    far_writer.write(request.head(through_proxy=through_proxy))
                    sending = _send_body(request, reader, far_writer, record.count_sent)
                await both_ways(sending, pump(far_reader, writer, record.count_received))
        except _Refusal as refusal:
            record.refusal = why = str(refusal).removesuffix(".")
            if refusal.status == _UNREACHABLE:
                self.tell_unreached(request.target, why)
            if refusal.status != HTTPStatus.FORBIDDEN:
                raise
            self.refusals += 1
            self.tell_refusal(request.target, why)
            refused = f"network access to {request.target.shown} was not allowed"
            raise _Refusal(refusal.status, refused, f": {why}. {_ADVICE}") from refusal

    async def _permit(
        self, target: Target, reader: asyncio.StreamReader, *, is_read_only: bool
    ) -> None:
        """Decide whether `target` may be reached; a client that hangs up cancels that.

        Raises:
            _Refusal: It may not be reached.
            EOFError: The client has hung up.
        """
        if why := self.why_never(target):
            raise _Refusal(403, why)
        wanted = Wanted(target, is_read_only)
        deciding = asyncio.ensure_future(self.decide(wanted))
        leaving = asyncio.ensure_future(_end_of(reader))
        try:
            await asyncio.wait((deciding, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not deciding.done():
                raise EOFError
            why = deciding.result()
        finally:
            deciding.cancel()
            leaving.cancel()
        if why:
            raise _Refusal(403, why)

    def why_never(self, target: Target) -> str:
        """Why `target` is out of reach whatever the user says; empty if it is not known to be."""
        try:
            check_host(target.host, may_be_private=self._may_be_private, remedy=_OF_PRIVATE)
        except ToolError as error:
            return str(error)
        return ""

    @asynccontextmanager
    async def _connect(
        self, request: ProxyRequest
    ) -> AsyncGenerator[
        tuple[asyncio.StreamReader, asyncio.StreamWriter, tuple[bytes, ...] | None], None
    ]:
        """A connection to the target of `request`, and the lines for a proxy on the way.

        Raises:
            _Refusal: No connection can be made.
        """
        target = request.target
        proxy = self._proxy_for(target)
        addresses = await self._addresses(target, has_proxy=bool(proxy))
        lines: tuple[bytes, ...] | None = None
        try:
            async with asyncio.timeout(_CONNECTED_WITHIN_S):
                if proxy:
                    reader, writer, lines = await _through(proxy, request)
                else:
                    reader, writer = await _first_of(addresses, target.port)
        except (OSError, TimeoutError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            why = str(error) or "it does not answer"
            raise _Refusal(_UNREACHABLE, f"{target.shown} cannot be reached: {why}") from error
        try:
            yield reader, writer, lines
        finally:
            writer.close()

    async def _addresses(self, target: Target, *, has_proxy: bool) -> list[str]:
        """The addresses of `target`, all checked."""
        try:
            found = list(await asyncio.to_thread(self._resolve, target.host, target.port))
        except (OSError, UnicodeError) as error:
            if not has_proxy:
                raise _Refusal(_UNREACHABLE, f"{target.host} was not found: {error}") from error
            return []
        try:
            check_addresses(
                target.host, found, may_be_private=self._may_be_private, remedy=_OF_PRIVATE
            )
        except ToolError as error:
            raise _Refusal(403, str(error)) from error
        return found


class Relays:
    """The open connections."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def count(self) -> int:
        """How many connections are open."""
        return len(self._tasks)

    def add(self, relaying: Coroutine[None, None, None]) -> None:
        """Run `relaying`, which closes its connection however it ends."""
        task = asyncio.create_task(relaying)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """End all connections."""
        for task in self._tasks:
            task.cancel()


async def pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Callable[[int], None]
) -> None:
    """Copy what arrives until its end, which is passed on too."""
    while chunk := await reader.read(_READ_BYTES):
        writer.write(chunk)
        count(len(chunk))
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def both_ways(one: Coroutine[None, None, None], other: Coroutine[None, None, None]) -> None:
    """Run both until they end; if one fails, both end without an error."""
    tasks = (asyncio.ensure_future(one), asyncio.ensure_future(other))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _send_body(
    request: ProxyRequest,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    count: Callable[[int], None],
) -> None:
    """Send the body of a plain request, and nothing after it."""
    if not request.is_chunked:
        await _send(reader, writer, request.body_bytes, count)
        return
    while size := chunk_bytes((await reader.readuntil(b"\r\n"))[:-2]):
        writer.write(b"%x\r\n" % size)
        await _send(reader, writer, size, count)
        if await reader.readexactly(2) != b"\r\n":
            raise BadRequest("a chunk of the body has no end")
        writer.write(b"\r\n")
    writer.write(b"0\r\n\r\n")  # without trailers, which few servers need
    await writer.drain()


async def _send(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    size: int,
    count: Callable[[int], None],
) -> None:
    while size:
        chunk = await reader.read(min(size, _READ_BYTES))
        if not chunk:
            raise EOFError
        size -= len(chunk)
        count(len(chunk))
        writer.write(chunk)
        await writer.drain()


async def _end_of(reader: asyncio.StreamReader) -> None:
    """Wait until a client that waits for an answer hangs up, without reading what it sends."""
    while not reader.at_eof() and reader.exception() is None:  # noqa: ASYNC110 - no event for it
        await asyncio.sleep(0.2)


async def _first_of(
    addresses: list[str], port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first of the checked addresses that accepts one."""
    failed: OSError = OSError("it has no address")
    for address in addresses:
        try:
            return await asyncio.open_connection(address.partition("%")[0], port)
        except OSError as error:
            failed = error
    raise failed


async def _through(
    proxy: str, request: ProxyRequest
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, tuple[bytes, ...]]:
    """A connection through the user's own proxy, and the lines it needs with a plain request.

    Raises:
        OSError, EOFError: There is none.
        ValueError: It is not an HTTP proxy.
    """
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the proxy of your environment is not an HTTP proxy")
    is_encrypted = parts.scheme == "https"
    reader, writer = await asyncio.open_connection(
        parts.hostname,
        parts.port or (443 if is_encrypted else 80),
        ssl=ssl.create_default_context() if is_encrypted else None,
        limit=MOST_HEAD_BYTES,
    )
    lines: tuple[bytes, ...] = ()
    if parts.username is not None:
        name = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines = (b"Proxy-Authorization: Basic " + base64.b64encode(name.encode()),)
    if not request.is_tunnel:
        return reader, writer, lines
    try:
        netloc = request.target.netloc.encode()
        words = [b"CONNECT " + netloc + b" HTTP/1.1", b"Host: " + netloc, *lines, b"", b""]
        writer.write(b"\r\n".join(words))
        answer = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
        status = answer.split(b" ")[1:2]
        if not (status and status[0].startswith(b"2")):
            raise OSError(f"your proxy answers {answer.decode('ascii', 'replace')[:80]}")
    except BaseException:
        writer.close()
        raise
    return reader, writer, lines


def _environments_proxy(target: Target) -> str:
    """The proxy that our environment names for `target`."""
    from urllib.request import getproxies, proxy_bypass  # 10 ms that start-up can avoid

    proxies = getproxies()
    scheme = "http" if target.port == 80 else "https"
    proxy = proxies.get(scheme) or proxies.get("all", "")
    return "" if not proxy or proxy_bypass(target.host) else proxy


def _answer(refusal: _Refusal) -> bytes:
    """A response whose status line says what was refused: for CONNECT, few programs print more."""
    words = " ".join(f"agent-tui's sandbox: {refusal}".split())
    reason = "".join(char if " " <= char <= "~" else "?" for char in words)
    body = f"{words}{refusal.more}\n".encode()
    head = (
        f"HTTP/1.1 {refusal.status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
