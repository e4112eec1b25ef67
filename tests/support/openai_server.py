"""A real HTTP server on loopback that speaks the OpenAI streaming chat protocol from a script.

    with OpenAiServer() as server:
        server.play(
            Reply(text="Let me look.", tool_calls=(Call("read", {"path": "a.py"}),)),
            rate_limited(retry_after="0"),
            Reply(text="Done."),
        )
        ...  # point the program at server.base_url, any model name, any key
        assert server.requests[0].body["messages"][-1]["content"] == "hello"

Every chat request takes the next reply of the script; an empty script answers 500 and says so.
A reply may also be a function of the request. The server runs in a thread of its own, so it
serves tests with and without an event loop, and programs in other processes alike.
"""

import asyncio
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

Ending: TypeAlias = Literal["whole", "hold", "hang", "close", "reset", "half", "broken", "error"]
"""What happens after the last piece of a reply and before its finish reason:

``whole``  nothing: finish reason, usage and ``[DONE]`` follow
``hold``   silence until `OpenAiServer.release`, then as ``whole``
``hang``   silence until the client hangs up
``close``  an orderly end of the body: no finish reason, no ``[DONE]``
``reset``  the connection is reset (RST)
``half``   half of an event, then an orderly end of the connection, not of the body
``broken`` an event that is not JSON
``error``  an error event, as gateways send after the headers are gone
"""


@dataclass(frozen=True)
class Call:
    """A tool call. `arguments` may be text, to send what is not JSON; `pieces` splits it."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""
    pieces: int = 3
    index: int | None = None


@dataclass(frozen=True)
class Reply:
    """A streamed reply. `text` as a tuple is sent in exactly these pieces, a string by words.

    `finish=""` leaves the finish reason out, ``None`` derives it; `usage` is prompt and
    completion tokens, ``None`` sends none. `raw_events` are sent as they are, after the text.
    """

    text: str | tuple[str, ...] = ""
    thinking: str = ""
    tool_calls: tuple[Call, ...] = ()
    finish: str | None = None
    usage: tuple[int, int] | None = (11, 7)
    cached_tokens: int = 0
    ending: Ending = "whole"
    done: bool = True
    newline: str = "\n"
    comments: bool = False
    delay_s: float = 0.0
    raw_events: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """An answer in one piece: a refusal or, among `OpenAiServer.pages`, any page."""

    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True)
class NoHeaders:
    """Nothing comes back at all until the client hangs up (or, with `reset`, it is reset)."""

    reset: bool = False


Answer: TypeAlias = Reply | Failure | NoHeaders
ScriptItem: TypeAlias = "Answer | Callable[[RecordedRequest], Answer]"


@dataclass(frozen=True)
class RecordedRequest:
    """One request as it arrived; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


def failure(
    status: int, message: str, *, code: str = "", kind: str = "", **headers: str
) -> Failure:
    """A failure in OpenAI's JSON; `headers` with underscores for dashes."""
    error = {"message": message, "type": kind or "error", "code": code or None, "param": None}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Failure(status, json.dumps({"error": error}), named)


def rate_limited(retry_after: str = "") -> Failure:
    """A 429 that passes; `retry_after` in seconds or as an HTTP date."""
    headers = {"retry_after": retry_after} if retry_after else {}
    text = "Rate limit reached for requests: 500 requests per minute. Please try again later."
    return failure(429, text, code="rate_limit_exceeded", kind="requests", **headers)


def out_of_quota() -> Failure:
    """A 429 that waiting does not help."""
    text = "You exceeded your current quota, please check your plan and billing details."
    return failure(429, text, code="insufficient_quota", kind="insufficient_quota")


def context_overflow(limit: int = 8192, asked: int = 9000) -> Failure:
    """The request is larger than the model's window, in OpenAI's words."""
    text = (
        f"This model's maximum context length is {limit} tokens. However, your messages "
        f"resulted in {asked} tokens. Please reduce the length of the messages."
    )
    return failure(400, text, code="context_length_exceeded", kind="invalid_request_error")


def bad_key() -> Failure:
    """A 401."""
    text = "Incorrect API key provided. You can find your API key at your account page."
    return failure(401, text, code="invalid_api_key", kind="invalid_request_error")


def no_such_model(name: str = "nope") -> Failure:
    """A 404."""
    text = f"The model `{name}` does not exist or you do not have access to it."
    return failure(404, text, code="model_not_found", kind="invalid_request_error")


def bad_gateway() -> Failure:
    """A 502 as a proxy sends it: a page of HTML."""
    page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
    return Failure(502, page, content_type="text/html")


def overloaded() -> Failure:
    """A 529."""
    return failure(529, "Overloaded", kind="overloaded_error")


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
        return [request for request in self.requests if request.path.endswith("/chat/completions")]

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

    def wait_for_requests(self, count: int, timeout_s: float = 20.0) -> bool:
        """Block until `count` requests have arrived; false when they did not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.requests) >= count, timeout_s)

    def wait_for_disconnects(self, count: int = 1, timeout_s: float = 20.0) -> bool:
        """Block until clients hung up `count` times; false when they did not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._disconnects >= count, timeout_s)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for connection in tuple(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            request = await _read_request(reader)
            if request is not None:
                with self._changed:
                    self.requests.append(request)
                    self._changed.notify_all()
                await self._answer(request, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self._note_disconnect()
        except asyncio.CancelledError:
            writer.transport.abort()  # the server stops: nobody waits for what is left
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(
        self,
        request: RecordedRequest,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if not request.path.endswith("/chat/completions"):
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
            for event in _pieces(reply, request):
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
                event = json.dumps(_chunk(request, {"content": "never complete"}))
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
                error = {"error": {"message": text, "type": "server_error", "code": None}}
                await _send_event(writer, json.dumps(error), reply)
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
    _write_chunk(writer, f"{comment}data: {event}{reply.newline}{reply.newline}")
    await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST instead of FIN: what a crashed peer or a firewall does."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _write_chunk(writer: asyncio.StreamWriter, text: str) -> None:
    raw = text.encode()
    writer.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")


def _pieces(reply: Reply, request: RecordedRequest) -> list[str]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in _words(reply.thinking)]
    text = _words(reply.text) if isinstance(reply.text, str) else list(reply.text)
    deltas += [{"content": piece} for piece in text]
    for number, call in enumerate(reply.tool_calls):
        deltas += [{"tool_calls": [piece]} for piece in _call_pieces(call, number)]
    return [json.dumps(_chunk(request, delta)) for delta in deltas] + list(reply.raw_events)


def _call_pieces(call: Call, number: int) -> list[dict[str, Any]]:
    index = number if call.index is None else call.index
    written = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    size = max(1, -(-len(written) // call.pieces))
    head = {
        "index": index,
        "id": call.id or f"call_{number}",
        "type": "function",
        "function": {"name": call.name, "arguments": ""},
    }
    rest = [
        {"index": index, "function": {"arguments": written[at : at + size]}}
        for at in range(0, len(written), size)
    ]
    return [head, *rest]


def _closing_events(reply: Reply, request: RecordedRequest) -> list[str]:
    events: list[str] = []
    finish = reply.finish
    if finish is None:
        finish = "tool_calls" if reply.tool_calls else "stop"
    if finish:
        events.append(json.dumps(_chunk(request, {}, finish)))
    if reply.usage is not None:
        prompt, completion = reply.usage
        chunk = _chunk(request, {})
        chunk["choices"] = []
        chunk["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
        }
        events.append(json.dumps(chunk))
    return [*events, "[DONE]"] if reply.done else events


def _chunk(
    request: RecordedRequest, delta: dict[str, Any], finish: str | None = None
) -> dict[str, Any]:
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": str((request.body or {}).get("model", "")),
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def _words(text: str) -> list[str]:
    """`text` cut after each space, so that the pieces join to the whole."""
    return [word + " " for word in text.split(" ")[:-1]] + [text.split(" ")[-1]] if text else []
