"""Event streams over HTTP, read as JSON objects. Imported late, as httpx takes 0.1 s."""

import asyncio
import importlib
import json
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import TypeVar, cast

import httpx
from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.providers.wires.base import (
    STREAM_END,
    Address,
    BadAddressError,
    Framing,
    InTime,
    LostConnectionError,
    MalformedReplyError,
    NoStreamError,
    NotHttpError,
    PageError,
    RedirectError,
    RefusedError,
    Signer,
)

importlib.import_module("anyio._backends._asyncio")  # otherwise the first request would wait for it

_T = TypeVar("_T")

_CONNECT_TIMEOUT_S = 30.0
_KEEP_ALIVE_S = 120.0
"""Seconds; a tool may run between two requests of a turn. Servers may close earlier."""
_END_WITHIN_S = 0.02
"""Seconds for a response to end after its last event; then its connection is closed."""
_MOST_END_BYTES = 4_096
"""More than this after the last event is no end."""

_CONNECTED = "connection.connect_tcp.started"
_SENT = "http11.send_request_headers.started"
_ANSWERED = "http11.receive_response_headers.complete"
"""Steps of a request, as httpcore names them."""

MAX_EVENT_BYTES = 32_000_000
"""Bytes; a longer event or response is not a reply: no model comes near this."""

_EVENT_STREAM = "text/event-stream"
_END = b"[DONE]"
_BOM = b"\xef\xbb\xbf"
_LOOKS_LIKE_EVENTS = re.compile(rb"\s*(?:data:|event:|error:|:)")
_LOOPBACK = ("all://127.0.0.1", "all://localhost", "all://[::1]")
_MAX_REDIRECTS = 4
_KEEPING_REDIRECTS = frozenset({307, 308})
_MAX_DIGITS = 300
"""Digits of a whole number; Python refuses to parse thousands of them."""


class HttpClient:
    """A client without its own timeout for silent streams; keeps connections open.

    Servers on this machine are called without the environment's proxy.

    Args:
        environ: The variables that accounts are opened with.
        transport: Carries the requests; None for the network.
    """

    def __init__(
        self, environ: Mapping[str, str], transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._environ = environ
        self._http = httpx.AsyncClient(
            transport=transport,
            mounts=dict.fromkeys(_LOOPBACK),
            timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),
            limits=httpx.Limits(keepalive_expiry=_KEEP_ALIVE_S),
        )
        self._signers: dict[Callable[[Mapping[str, str]], Signer], Signer] = {}

    async def aclose(self) -> None:
        """Close the open connections."""
        await self._http.aclose()

    async def events(
        self,
        address: Address,
        content: bytes,
        in_time: InTime,
        read_headers: Callable[[Mapping[str, str]], object] = len,
    ) -> AsyncGenerator[JsonObject, None]:
        """Post `content` and yield the objects of the stream; closing this closes the connection.

        Args:
            address: Where to send the request.
            content: The JSON body.
            in_time: Waits for the response and for each of its pieces, comments included.
            read_headers: Called with the headers of the response, good or not, in lower case.

        Raises:
            BadAddressError: There can be nothing at the address.
            NotHttpError: The server there does not speak HTTP.
            RedirectError: The server redirects to an address that must not get the request.
            RefusedError: The response is an error, or cannot be a stream.
            LostConnectionError: The connection failed.
            MalformedReplyError: An event is not JSON.
            MissingKeyError: The request must be signed, and there are no credentials.
        """
        headers = {"content-type": "application/json", "accept": _EVENT_STREAM, **address.headers}
        may_follow = True
        if (sign := address.sign) is not None:
            signing = _in_daemon_thread(lambda: self._sign(sign, address.url, content))
            signature, may_follow = await in_time(signing)
            headers |= signature
        try:
            request = self._http.build_request(
                "POST", address.url, content=content, headers=headers
            )
        except httpx.InvalidURL as error:
            raise BadAddressError(f"{address.url} is not a web address") from error
        try:
            response = await self._answer(request, in_time, may_follow=may_follow)
            read_headers(response.headers)
            pieces = response.aiter_bytes()
            try:
                async with aclosing(_events(response, pieces, in_time, address.framing)) as events:
                    async for event in events:
                        yield event
            except GeneratorExit:
                await _read_end(pieces)
                raise
            finally:
                await response.aclose()
        except httpx.UnsupportedProtocol as error:
            raise BadAddressError(f"{address.url} is not a web address") from error
        except httpx.HTTPError as error:
            raise LostConnectionError(str(error)) from error

    async def _answer(
        self, request: httpx.Request, in_time: InTime, *, may_follow: bool
    ) -> httpx.Response:
        """The response, following a redirect if necessary.

        A redirect that keeps the request unchanged (307, 308) is followed on the same host, which
        may have the key. A signature is valid for one address only.

        Raises:
            NotHttpError: The server there does not speak HTTP.
            RedirectError: It leads to another host, changes the request, or repeats.
        """
        for _ in range(_MAX_REDIRECTS):
            try:
                response = await in_time(self._send(request))
            except httpx.RemoteProtocolError as error:
                if "location header" in str(error):
                    raise RedirectError("no address") from error
                if str(error).startswith("illegal "):
                    raise NotHttpError("it does not speak HTTP") from error
                raise
            target = response.headers.get("location", "")
            if not (response.is_redirect and target):
                return response
            await response.aclose()
            try:
                url = request.url.join(target)
            except httpx.InvalidURL as error:
                raise RedirectError(target) from error
            keeps_body = response.status_code in _KEEPING_REDIRECTS
            if not (may_follow and keeps_body and _is_same_host(request.url, url)):
                raise RedirectError(str(url))
            headers = {**request.headers, "host": url.netloc.decode("ascii")}
            request = self._http.build_request(
                "POST", url, content=request.content, headers=headers
            )
        raise RedirectError(str(request.url))

    async def _send(self, request: httpx.Request) -> httpx.Response:
        """Send `request`, again if it went over an open connection that the server just closed."""
        steps: set[str] = set()

        async def note(step: str, _info: object) -> None:
            steps.add(step)

        while True:
            steps.clear()
            request.extensions = {**request.extensions, "trace": note}
            try:
                return await self._http.send(request, stream=True)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                was_open = _SENT in steps and _CONNECTED not in steps
                if not was_open or _ANSWERED in steps:
                    raise

    def _sign(
        self, sign: Callable[[Mapping[str, str]], Signer], url: str, content: bytes
    ) -> tuple[Mapping[str, str], bool]:
        """The headers of an account, and whether they are valid after a redirect, too; blocks."""
        if (signer := self._signers.get(sign)) is None:
            signer = self._signers[sign] = sign(self._environ)
        return signer.headers(url, content), not signer.is_for_one_address


async def _read_end(pieces: AsyncIterator[bytes]) -> None:
    """Read what follows the last event, so that the next request can use the connection.

    A reply that is given up in the middle goes on; its connection is closed.
    """
    left_bytes = _MOST_END_BYTES
    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(_END_WITHIN_S):
            async for piece in pieces:
                left_bytes -= len(piece)
                if left_bytes < 0:
                    break


async def _events(
    response: httpx.Response,
    pieces: AsyncIterator[bytes],
    in_time: InTime,
    framing: Framing | None,
) -> AsyncGenerator[JsonObject, None]:
    if response.is_error:
        raise _refusal(await _whole(pieces, in_time), response)
    kind = response.headers.get("content-type", "")
    if framing is not None and kind.startswith(framing.content_type):
        async with aclosing(framing.read(pieces, in_time)) as events:
            async for event in events:
                yield event
        return
    if not kind.startswith(_EVENT_STREAM):
        whole = await _whole(pieces, in_time)
        if (reply := _object_in(whole)) is not None and "choices" in reply:
            yield reply  # some do not stream even if asked to
            return
        if not _LOOKS_LIKE_EVENTS.match(whole):
            raise _refusal(whole, response)
        pieces = _one(whole)
    async with aclosing(_blocks(pieces, in_time)) as blocks:
        async for block in blocks:
            for event in _objects(block):
                yield event


async def _whole(pieces: AsyncIterator[bytes], in_time: InTime) -> bytes:
    """The whole response.

    Raises:
        MalformedReplyError: It is too long.
    """
    whole = bytearray()
    while (piece := await in_time(anext(pieces, None))) is not None:
        whole += piece
        _require_bounded(len(whole))
    return bytes(whole)


def _require_bounded(size_bytes: int) -> None:
    if size_bytes > MAX_EVENT_BYTES:
        raise MalformedReplyError(f"it sent an event of more than {MAX_EVENT_BYTES:,} bytes")


async def _one(piece: bytes) -> AsyncGenerator[bytes, None]:
    yield piece


@dataclass(slots=True)
class _Block:
    """The lines of an event; `is_error`: the server marks it as an error."""

    data: list[bytes] = field(default_factory=list[bytes])
    is_error: bool = False

    def take(self, line: bytes) -> None:
        """Add one line.

        llama.cpp until September 2025 sent errors as a field named ``error``.
        """
        name, _, value = line.partition(b":")
        if name in (b"data", b"error"):
            self.data.append(value)
        self.is_error |= name == b"error" or (name == b"event" and value.strip() == b"error")


async def _blocks(pieces: AsyncIterator[bytes], in_time: InTime) -> AsyncGenerator[_Block, None]:
    """The events that have data.

    Lines end only in LF or CRLF: text from a model may hold any other separator.

    Raises:
        MalformedReplyError: An event does not end.
    """
    waiting: list[bytes] = []
    block = _Block()
    size_bytes = 0
    while (piece := await in_time(anext(pieces, None))) is not None:
        size_bytes += len(piece)
        _require_bounded(size_bytes)
        *ended, rest = piece.split(b"\n")
        for end in ended:
            line = b"".join((*waiting, end)).removesuffix(b"\r").removeprefix(_BOM)
            waiting.clear()
            if line:
                block.take(line)
                continue
            size_bytes = len(rest)
            if block.data:
                yield block
            block = _Block()
        if rest:
            waiting.append(rest)
    block.take(b"".join(waiting).removesuffix(b"\r"))
    if block.data:
        yield block


def _objects(block: _Block) -> Iterator[JsonObject]:
    """The objects in an event, or `STREAM_END`; none if it is empty.

    Usually one, on one or more lines; some servers omit the empty line between two events.

    Raises:
        MalformedReplyError: It is broken.
    """
    whole = b"\n".join(block.data)
    if not whole.strip():
        return
    try:
        values = [_value(whole)]
    except (ValueError, RecursionError) as error:
        try:
            values = [_value(line) for line in block.data if line.strip()]
        except (ValueError, RecursionError):
            if not block.is_error:
                raise MalformedReplyError("its stream holds a malformed event") from error
            values = [whole.decode("utf-8", "replace").strip()]
    for value in values:
        if block.is_error and value is not STREAM_END:
            yield _as_error(value)
        elif isinstance(value, dict):
            yield value


def _as_error(value: JsonValue) -> JsonObject:
    """An event that its server marks as an error, in the form most servers use."""
    if isinstance(value, dict) and ("error" in value or value.get("type") == "error"):
        return value
    return {"error": value}


def _value(data: bytes) -> JsonValue:
    if data.strip() == _END:
        return STREAM_END
    return cast(JsonValue, _JSON.decode(data.decode("utf-8", "surrogatepass")))


def _whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


_JSON = json.JSONDecoder(parse_int=_whole_number)


async def _in_daemon_thread(work: Callable[[], _T]) -> _T:
    """The result of `work`; the program does not wait for it when it exits."""
    done: Future[_T] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)


def _is_same_host(before: httpx.URL, after: httpx.URL) -> bool:
    """Whether `after` calls the same host as `before`, no less securely."""
    if before.host != after.host:
        return False
    origins = [(url.scheme, url.port) for url in (before, after)]
    return origins[0] == origins[1] or (before.scheme, after.scheme) == ("http", "https")


def _object_in(text: bytes) -> JsonObject | None:
    """The object in a response; Google sends it in a list. None for anything else."""
    try:
        value = cast(JsonValue, json.loads(text))
    except ValueError:
        return None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, dict) else None


def _refusal(answer: bytes, response: httpx.Response) -> RefusedError:
    """The error in a response; one that claims success but is no stream has no status."""
    text, found = answer.decode("utf-8", "replace"), _object_in(answer)
    headers = dict(response.headers)
    if response.is_error:
        return RefusedError(text, response.status_code, found, headers)
    if text.strip() and "error" not in (found or {}):
        return PageError(text, None, found, headers)
    return NoStreamError(text.strip() or "it sent no reply", None, found, headers)
