"""A real HTTP server on loopback that speaks the streaming chat protocols from a script.

    with OpenAiServer() as server:
        server.play(
            Reply(text="Let me look.", tool_calls=(Call("read", {"path": "a.py"}),)),
            rate_limited(retry_after="0"),
            Reply(text="Done."),
        )
        ...  # point the program at server.base_url, any model name, any key
        assert server.requests[0].body["messages"][-1]["content"] == "hello"

Every chat request takes the next reply of the script; an empty script answers 500 and says so.
A request to ``/v1/messages`` is one of Anthropic's protocol and gets the same reply in its events.
A reply may also be a function of the request. The server runs in a thread of its own, so it
serves tests with and without an event loop, and programs in other processes alike.
"""

import asyncio
import contextlib
import json
import re
import socket
import struct
import threading
from collections import deque
from types import TracebackType
from typing import Any, Self

from tests.support import anthropic_script, openai_script
from tests.support.openai_script import (
    Answer,
    Call,
    Ending,
    Failure,
    NoHeaders,
    RecordedRequest,
    Reply,
    ScriptItem,
    bad_gateway,
    bad_key,
    context_overflow,
    failure,
    no_such_model,
    out_of_quota,
    overloaded,
    rate_limited,
)
from tests.support.patience import PATIENCE_S

__all__ = [
    "Answer",
    "Call",
    "Ending",
    "Failure",
    "NoHeaders",
    "OpenAiServer",
    "RecordedRequest",
    "Reply",
    "bad_gateway",
    "bad_key",
    "context_overflow",
    "failure",
    "no_such_model",
    "out_of_quota",
    "overloaded",
    "rate_limited",
]


class OpenAiServer:
    """The server; a context manager.

    `pages` answers other paths, by exact path: a `Failure` as it is, anything else as JSON.
    """

    def __init__(self, port: int = 0) -> None:
        self.requests: list[RecordedRequest] = []
        self.pages: dict[str, Any] = {}
        self._port = port
        self._script: deque[ScriptItem] = deque()
        self._changed = threading.Condition()
        self._disconnects = 0
        self._loop = asyncio.new_event_loop()
        self._released = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._port

    @property
    def base_url(self) -> str:
        """What ``--base-url`` takes."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def chats(self) -> list[RecordedRequest]:
        """The chat requests so far, in order of arrival."""
        return [request for request in self.requests if _is_chat(request)]

    @property
    def disconnects(self) -> int:
        """How often a client hung up before its reply was at its end."""
        return self._disconnects

    def play(self, *answers: ScriptItem) -> None:
        """Append to the script."""
        self._script.extend(answers)

    def reset(self) -> None:
        """Forget the script and what was recorded; let go of replies on hold."""
        self.release()
        self._script.clear()
        self.requests.clear()
        self.pages.clear()
        with self._changed:
            self._disconnects = 0

    def release(self) -> None:
        """Let every reply that is on hold go on."""

        def let_go() -> None:
            self._released.set()
            self._released = asyncio.Event()

        self._loop.call_soon_threadsafe(let_go)

    def wait_for_requests(self, count: int, timeout_s: float = PATIENCE_S) -> bool:
        """Block until `count` requests have arrived; false when they did not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.requests) >= count, timeout_s)

    def wait_for_chats(self, count: int = 1, timeout_s: float = PATIENCE_S) -> bool:
        """Block until `count` chat requests have arrived; false when they did not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.chats) >= count, timeout_s)

    def wait_for_disconnects(self, count: int = 1, timeout_s: float = PATIENCE_S) -> bool:
        """Block until clients hung up `count` times; false when they did not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._disconnects >= count, timeout_s)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._server is not None
        while len(asyncio.all_tasks()) > 1:  # a connection that is just being made comes first
            for connection in tuple(self._connections):
                connection.cancel()
            await asyncio.sleep(0)
        self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._take_request(reader, writer)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        except (ConnectionError, asyncio.IncompleteReadError):
            self._note_disconnect()
        except asyncio.CancelledError:
            pass  # the server stops
        finally:
            writer.transport.abort()  # nobody waits for what is left, if anything is
            self._connections.discard(task)

    async def _take_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        request = await _read_request(reader)
        if request is not None:
            with self._changed:
                self.requests.append(request)
                self._changed.notify_all()
            await self._answer(request, reader, writer)

    async def _answer(
        self,
        request: RecordedRequest,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if request.path in self.pages or not _is_chat(request):
            page = self.pages.get(request.path)
            whole = page if isinstance(page, Failure) else _page(page)
            await _send_whole(writer, whole)
            return
        if not self._script:
            await _send_whole(writer, failure(500, "script is over"))
            return
        item = self._script.popleft()
        answer = item(request) if callable(item) else item
        match answer:
            case Failure():
                await _send_whole(writer, answer)
            case NoHeaders(reset=True):
                _reset(writer)
            case NoHeaders():
                await self._until_hung_up(reader)
            case Reply():
                await self._stream(answer, request, reader, writer)

    async def _stream(
        self,
        reply: Reply,
        request: RecordedRequest,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
            b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        )
        watch = asyncio.create_task(reader.read(1))  # returns at end of file: the client left
        try:
            if reply.bom:
                _write_chunk(writer, "\ufeff")
            for sign in reply.signs:
                _write_chunk(writer, sign)
                await writer.drain()
                await asyncio.sleep(reply.signs_every_s)
                if watch.done():
                    raise ConnectionResetError
            for event in _opening_events(reply, request):
                await _send_event(writer, event, reply)
                if watch.done():
                    raise ConnectionResetError
                if reply.delay_s:
                    await asyncio.sleep(reply.delay_s)
            await self._end(reply, request, writer, watch)
        finally:
            watch.cancel()

    async def _end(
        self,
        reply: Reply,
        request: RecordedRequest,
        writer: asyncio.StreamWriter,
        watch: "asyncio.Task[bytes]",
    ) -> None:
        match reply.ending:
            case "hold":
                released = asyncio.create_task(self._released.wait())
                await asyncio.wait((released, watch), return_when=asyncio.FIRST_COMPLETED)
                released.cancel()
                if watch.done():
                    raise ConnectionResetError
            case "hang":
                await watch
                raise ConnectionResetError
            case "reset":
                await asyncio.sleep(0.02)  # let the pieces before it arrive first
                _reset(writer)
                return
            case "half":
                event = _text_event(request, "never complete")
                _write_chunk(writer, f"data: {event[: len(event) // 2]}")
                await writer.drain()
                return
            case "close":
                writer.write(b"0\r\n\r\n")
                await writer.drain()
                return
            case "broken":
                await _send_event(writer, '{"id": "x", "choices": [{"delta"', reply)
            case "error":
                text = "The server had an error while processing your request"
                await _send_event(writer, _error_event(request, text), reply)
            case "field":
                error = {"code": 500, "message": "The server lost its slot", "type": "server_error"}
                _write_chunk(writer, f"error: {json.dumps(error)}\n\ndata: [DONE]\n\n")
                await writer.drain()
                return
            case "whole":
                pass
        for event in _closing_events(reply, request):
            await _send_event(writer, event, reply)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _until_hung_up(self, reader: asyncio.StreamReader) -> None:
        await reader.read(1)
        self._note_disconnect()

    def _note_disconnect(self) -> None:
        with self._changed:
            self._disconnects += 1
            self._changed.notify_all()


async def _read_request(reader: asyncio.StreamReader) -> RecordedRequest | None:
    head = await reader.readline()
    if not head.strip():
        return None
    method, path, _ = head.decode().split(" ", 2)
    headers: dict[str, str] = {}
    while (line := (await reader.readline()).decode().strip()) != "":
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return RecordedRequest(method, path, headers, json.loads(raw) if raw else None)


def _is_chat(request: RecordedRequest) -> bool:
    return request.path.endswith("/chat/completions") or _is_anthropic(request)


def _is_anthropic(request: RecordedRequest) -> bool:
    return request.path.endswith("/v1/messages")


def _opening_events(reply: Reply, request: RecordedRequest) -> list[str]:
    if _is_anthropic(request):
        return anthropic_script.opening_events(reply)
    return openai_script.opening_events(reply, request)


def _closing_events(reply: Reply, request: RecordedRequest) -> list[str]:
    if _is_anthropic(request):
        return anthropic_script.closing_events(reply)
    return openai_script.closing_events(reply, request)


def _text_event(request: RecordedRequest, text: str) -> str:
    if _is_anthropic(request):
        return anthropic_script.text_event(text)
    return openai_script.text_event(request, text)


def _error_event(request: RecordedRequest, text: str) -> str:
    if _is_anthropic(request):
        return anthropic_script.error_event(text)
    return openai_script.error_event(text)


def _page(value: Any) -> Failure:
    return Failure(404 if value is None else 200, json.dumps(value))


async def _send_whole(writer: asyncio.StreamWriter, answer: Failure) -> None:
    raw = answer.body.encode()
    lines = [f"HTTP/1.1 {answer.status} Scripted", f"Content-Type: {answer.content_type}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    lines += [f"Content-Length: {len(raw)}", "Connection: close", "", ""]
    writer.write("\r\n".join(lines).encode() + raw)
    await writer.drain()


async def _send_event(writer: asyncio.StreamWriter, event: str, reply: Reply) -> None:
    comment = f": keep-alive{reply.newline}{reply.newline}" if reply.comments else ""
    named = re.match(r'\{"type": "(\w+)"', event)
    name = f"event: {named[1]}{reply.newline}" if named else ""  # Anthropic's have one
    _write_chunk(writer, f"{comment}{name}data: {event}{reply.newline}{reply.newline}")
    await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST instead of FIN: what a crashed peer or a firewall does."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _write_chunk(writer: asyncio.StreamWriter, text: str) -> None:
    raw = text.encode()
    writer.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")
