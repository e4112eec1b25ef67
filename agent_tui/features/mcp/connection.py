"""A connection to an MCP server: sends requests, reads answers, tolerates other output."""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from pydantic import JsonValue

from agent_tui.features.mcp.json_rpc import (
    METHOD_NOT_FOUND,
    STATELESS_VERSION,
    Incoming,
    NestedTooDeeplyError,
    Notification,
    Request,
    Response,
    message_line,
    parse_line,
    reply_line,
    result_line,
)
from agent_tui.messages import JsonObject
from agent_tui.tools.processes.keeper import READ_BYTES

MAX_MESSAGE_BYTES: Final = 8_000_000
"""Bytes; a longer message is not read: a few pictures, or a whole book."""

_PARSED_ASIDE_BYTES = 200_000
"""Bytes; parsing longer ones would block the screen."""

_LIST_CHANGES = frozenset(
    f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")
)
_MAX_PAGES = 20
_MAX_LISTED = 2_000
_MAX_UNREAD_CHARS = 200
_MAX_PROGRESS_CHARS = 1_000
_SHOWN_AT_ONCE = 50
_SHOW_AGAIN_S = 0.5
"""After so many progress messages, only some of a call's are shown."""

_MAX_UNREAD_REPLIES_BYTES = 1_000_000
"""Bytes; a server that asks but does not read the answers gets no more of them."""


Asking: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]
"""Answers a server's question to the user, given the question's parameters."""


class ServerGone(Exception):
    """The server has ended, or closed its output."""


class RequestFailed(Exception):
    """The server answered with an error or unusable data; `code` and `data` are the server's."""

    def __init__(self, why: str, code: int = 0, data: JsonValue = None) -> None:
        super().__init__(why)
        self.code = code
        self.data = data


@dataclass(slots=True)
class _Waiting:
    answer: "asyncio.Future[Response]"
    on_progress: Callable[[str], None]
    clock: asyncio.Timeout
    timeout_s: float
    shown: int = 0
    shown_at: float = 0.0


def ignore(_text: str) -> None:
    """An `on_progress` that ignores the line."""


class Connection:
    """Talks to one running server.

    Args:
        stdin: The server's input.
        stdout: The server's output; `read_all` must run meanwhile.
        on_changed: Called when the server says that its offer changed.
        on_ask: Answers its questions to the user, one at a time and only during one of our
            requests; None if it may ask none.
    """

    def __init__(
        self,
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        on_changed: Callable[[], None],
        on_ask: Asking | None = None,
    ) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._on_changed = on_changed
        self._on_ask = on_ask
        self._asking: asyncio.Task[None] | None = None
        self._ids = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._is_open = True
        self.meta: JsonObject = {}
        """Sent with every request, for servers without a handshake."""
        self.unread_output = ""
        """The newest line that was not a message."""

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        timeout_s: float,
        on_progress: Callable[[str], None] = ignore,
    ) -> JsonObject:
        """Send a request and wait for the result; cancelling also cancels it at the server.

        Raises:
            RequestFailed: It answered with an error.
            ServerGone: It ended.
            TimeoutError: It did not answer in time.
        """
        if not self._is_open:
            raise ServerGone
        request_id = next(self._ids)
        answer = asyncio.get_running_loop().create_future()
        clock = asyncio.timeout(timeout_s)
        self._waiting[request_id] = _Waiting(answer, on_progress, clock, timeout_s)
        meta: JsonObject = {**self.meta, "progressToken": request_id}
        try:
            async with clock:
                await self._send(message_line(method, {**params, "_meta": meta}, request_id))
                given = await answer
        except (TimeoutError, asyncio.CancelledError):
            self._cancel(method, request_id)
            raise
        finally:
            del self._waiting[request_id]
            if self._asking is not None and not self._waiting:
                self._asking.cancel()  # its question is no longer relevant
            if answer.done() and not answer.cancelled():
                answer.exception()  # there may be nobody else to retrieve it
        if given.error:
            raise RequestFailed(given.error, given.error_code, given.error_data)
        return given.result

    async def list_all(self, method: str, key: str, *, timeout_s: float) -> list[JsonValue]:
        """What a method lists under `key`, on all pages; empty if the server lacks the method.

        Raises:
            RequestFailed: It answered with an error, or without a list.
            ServerGone: It ended.
            TimeoutError: It did not answer in time.
        """
        listed: list[JsonValue] = []
        cursor: JsonValue = None
        for _ in range(_MAX_PAGES):
            params: JsonObject = {} if cursor is None else {"cursor": cursor}
            try:
                page = await self.request(method, params, timeout_s=timeout_s)
            except RequestFailed as error:
                if error.code == METHOD_NOT_FOUND:
                    break
                raise
            items, cursor = page.get(key), page.get("nextCursor")
            if not isinstance(items, list):
                raise RequestFailed(f"its list of {key} is not a list")
            listed += items
            if not isinstance(cursor, str) or len(listed) >= _MAX_LISTED:
                break
        return listed

    async def tell(self, method: str) -> None:
        """Send a notification.

        Raises:
            ServerGone: It ended.
        """
        await self._send(message_line(method))

    def go_stateless(self, client: JsonObject, capabilities: JsonObject) -> None:
        """Send the version, the client and its capabilities with every request from now on."""
        prefix = "io.modelcontextprotocol"
        self.meta = {
            f"{prefix}/protocolVersion": STATELESS_VERSION,
            f"{prefix}/clientInfo": client,
            f"{prefix}/clientCapabilities": capabilities,
        }

    async def read_all(self) -> None:
        """Read the server's output until it closes."""
        try:
            async with aclosing(self._lines()) as lines:
                async for line in lines:
                    if line is None:
                        limit = MAX_MESSAGE_BYTES // 1_000_000
                        self._fail_all(RequestFailed(f"it sent a message over {limit} MB"))
                    elif line.strip():
                        await self._take_in(line)
        finally:
            self._is_open = False
            if self._asking is not None:
                self._asking.cancel()
            self._fail_all(ServerGone())

    async def _take_in(self, line: bytes) -> None:
        try:
            is_long = len(line) > _PARSED_ASIDE_BYTES
            messages = await asyncio.to_thread(parse_line, line) if is_long else parse_line(line)
        except NestedTooDeeplyError:
            self._fail_all(RequestFailed("it sent a message that is nested too deeply"))
            return
        except ValueError:
            self.unread_output = line[:_MAX_UNREAD_CHARS].decode("utf-8", "replace").strip()
            return
        for message in messages:
            self._handle(message)

    def _handle(self, message: Incoming) -> None:
        match message:
            case Response():
                waiting = self._waiting.get(message.id)
                if waiting is not None and not waiting.answer.done():
                    waiting.answer.set_result(message)
            case Request(method="elicitation/create") if self._on_ask is not None:
                self._ask(message, self._on_ask)
            case Request():
                if self._stdin.transport.get_write_buffer_size() < _MAX_UNREAD_REPLIES_BYTES:
                    self._write(reply_line(message))
            case Notification(method=method) if method in _LIST_CHANGES:
                self._on_changed()
            case Notification(method="notifications/progress", params=params):
                self._show_progress(params)
            case Notification():
                pass
            case _:
                assert_never(message)

    def _ask(self, asked: Request, on_ask: Asking) -> None:
        """Answer one question without blocking the reader; no call times out meanwhile."""
        if self._asking is not None or not self._waiting:
            self._write(result_line(asked.id, {"action": "decline"}))
            return
        self._asking = asyncio.create_task(self._answer(asked, on_ask))

    async def _answer(self, asked: Request, on_ask: Asking) -> None:
        self._set_clocks(is_running=False)
        try:
            self._write(result_line(asked.id, await on_ask(asked.params)))
        finally:
            self._asking = None
            self._set_clocks(is_running=True)

    def _set_clocks(self, *, is_running: bool) -> None:
        now = asyncio.get_running_loop().time()
        for waiting in self._waiting.values():
            if not waiting.clock.expired():
                waiting.clock.reschedule(now + waiting.timeout_s if is_running else None)

    def _show_progress(self, params: JsonObject) -> None:
        token = params.get("progressToken")
        waiting = self._waiting.get(token) if isinstance(token, int) else None
        if waiting is None or not (said := _progress(params)):
            return
        now = time.monotonic()
        if waiting.shown < _SHOWN_AT_ONCE or now >= waiting.shown_at + _SHOW_AGAIN_S:
            waiting.shown, waiting.shown_at = waiting.shown + 1, now
            waiting.on_progress(f"{said[:_MAX_PROGRESS_CHARS]}\n")

    async def _lines(self) -> AsyncGenerator[bytes | None, None]:
        """Each line without its end; None for one that is too long."""
        held = bytearray()
        is_skipping = False
        while chunk := await self._stdout.read(READ_BYTES):
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                if not is_skipping:
                    yield bytes(held + end)
                held.clear()
                is_skipping = False
            if is_skipping:
                continue
            held += rest
            if len(held) > MAX_MESSAGE_BYTES:
                held.clear()
                is_skipping = True
                yield None

    async def _send(self, line: bytes) -> None:
        try:
            self._stdin.write(line)
            await self._stdin.drain()
        except OSError as error:
            raise ServerGone from error

    def _write(self, line: bytes) -> None:
        """Send without waiting; lost if the server has ended."""
        with suppress(OSError):
            self._stdin.write(line)

    def _cancel(self, method: str, request_id: int) -> None:
        if self._is_open and method != "initialize":
            params: JsonObject = {"requestId": request_id, "reason": "no longer wanted"}
            self._write(message_line("notifications/cancelled", params))

    def _fail_all(self, error: Exception) -> None:
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(error)


def _progress(params: JsonObject) -> str:
    """A call's progress, in the server's words or as ``3 of 10``; empty if it gives none."""
    match params:
        case {"message": str(said)} if said.strip():
            return said
        case {"progress": int() | float() as done, "total": int() | float() as total}:
            return f"{done:g} of {total:g}"
        case _:
            return ""
