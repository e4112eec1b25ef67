"""Event streams over HTTP, read as JSON objects; only the worker has httpx."""

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import cast

import httpx
from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.providers.litellm.aws import AwsAccount, framed_events
from agent_tui.providers.litellm.google_account import GoogleAccount
from agent_tui.providers.wires.base import (
    STREAM_END,
    Address,
    InTime,
    LostConnectionError,
    MalformedReplyError,
    NoStreamError,
    RefusedError,
)

_CONNECT_TIMEOUT_S = 30.0
_KEEP_ALIVE_S = 120.0
"""A tool may run between two requests of a turn; servers close earlier if they want to."""
MAX_EVENT_BYTES = 32_000_000
"""A longer event, or answer that is no stream, is no reply: no model comes near this."""

_EVENT_STREAM = "text/event-stream"
_FRAMES = "application/vnd.amazon.eventstream"
_END = b"[DONE]"
_BOM = b"\xef\xbb\xbf"
_LOOKS_LIKE_EVENTS = re.compile(rb"\s*(?:data:|event:|:)")


class HttpClient:
    """A client that never gives up on a silent stream by itself; connections are kept.

    Args:
        transport: What carries the requests; None for the network.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._http = httpx.AsyncClient(
            transport=transport,
            timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),
            limits=httpx.Limits(keepalive_expiry=_KEEP_ALIVE_S),
        )
        self._amazon: AwsAccount | None = None
        self._google: GoogleAccount | None = None

    async def events(
        self, address: Address, body: JsonObject, in_time: InTime
    ) -> AsyncGenerator[JsonObject, None]:
        """Post `body` and yield the objects of the stream; closing this closes the connection.

        Args:
            address: Where to.
            body: Sent as JSON.
            in_time: Waits for the answer and for each of its pieces, comments included.

        Raises:
            RefusedError: the answer is an error, or nothing that could be a stream.
            LostConnectionError: the connection failed.
            MalformedReplyError: an event is no JSON.
            MissingKeyError: it is to be signed, and there is nothing to sign with.
        """
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"content-type": "application/json", "accept": _EVENT_STREAM, **address.headers}
        if address.aws_region or address.as_google:
            headers |= await in_time(asyncio.to_thread(self._account_headers, address, content))
        request = self._http.build_request("POST", address.url, content=content, headers=headers)
        try:
            response = await in_time(self._http.send(request, stream=True))
            try:
                async with aclosing(_events(response, in_time)) as events:
                    async for event in events:
                        yield event
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            raise LostConnectionError(str(error)) from error

    def _account_headers(self, address: Address, content: bytes) -> dict[str, str]:
        """What shows an account's right to the request; blocks."""
        if address.as_google:
            if self._google is None:
                self._google = GoogleAccount(os.environ)
            return self._google.headers()
        if self._amazon is None:
            self._amazon = AwsAccount()
        return self._amazon.headers(address.url, content, address.aws_region)


async def _events(response: httpx.Response, in_time: InTime) -> AsyncGenerator[JsonObject, None]:
    pieces = response.aiter_bytes()
    if response.is_error:
        raise _refusal(await _whole(pieces, in_time), response)
    if response.headers.get("content-type", "").startswith(_FRAMES):
        async with aclosing(framed_events(pieces, in_time)) as events:
            async for event in events:
                yield event
        return
    if not response.headers.get("content-type", "").startswith(_EVENT_STREAM):
        whole = await _whole(pieces, in_time)
        if (reply := _object_in(whole)) is not None and "choices" in reply:
            yield reply  # some do not stream whatever they are asked
            return
        if not _LOOKS_LIKE_EVENTS.match(whole):
            raise _refusal(whole, response)
        pieces = _one(whole)
    async with aclosing(_data(pieces, in_time)) as events:
        async for data in events:
            for event in _objects(data):
                yield event


async def _whole(pieces: AsyncIterator[bytes], in_time: InTime) -> bytes:
    """All of an answer.

    Raises:
        MalformedReplyError: it is too long.
    """
    whole = bytearray()
    while (piece := await in_time(anext(pieces, None))) is not None:
        whole += piece
        _require_bounded(len(whole))
    return bytes(whole)


def _require_bounded(size_bytes: int) -> None:
    if size_bytes > MAX_EVENT_BYTES:
        raise MalformedReplyError(f"it sent more than {MAX_EVENT_BYTES:,} bytes without an end")


async def _one(piece: bytes) -> AsyncGenerator[bytes, None]:
    yield piece


async def _data(pieces: AsyncIterator[bytes], in_time: InTime) -> AsyncGenerator[bytes, None]:
    """The ``data`` of each event.

    Lines end in LF or CRLF and at nothing else: text of a model may hold any other separator.

    Raises:
        MalformedReplyError: an event has no end.
    """
    waiting: list[bytes] = []
    data: list[bytes] = []
    size_bytes = 0
    while (piece := await in_time(anext(pieces, None))) is not None:
        size_bytes += len(piece)
        _require_bounded(size_bytes)
        *ended, rest = piece.split(b"\n")
        for end in ended:
            line = b"".join((*waiting, end)).removesuffix(b"\r").removeprefix(_BOM)
            waiting.clear()
            if line.startswith(b"data:"):
                data.append(line[5:])
            elif not line:
                size_bytes = len(rest)
                if data:
                    yield b"\n".join(data)
                    data.clear()
        if rest:
            waiting.append(rest)
    last = b"".join(waiting).removesuffix(b"\r")
    if last.startswith(b"data:"):
        data.append(last[5:])
    if data:
        yield b"\n".join(data)


def _objects(data: bytes) -> Iterator[JsonObject]:
    """The objects an event holds, `STREAM_END` among them.

    It is one, in a line or several; some servers leave out the empty line between two events.

    Raises:
        MalformedReplyError: it is broken.
    """
    lines = data.split(b"\n")
    try:
        values = [_value(data)]
    except ValueError as error:
        try:
            values = [_value(line) for line in lines]
        except ValueError:
            raise MalformedReplyError("an event of its stream is broken") from error
    yield from (value for value in values if isinstance(value, dict))


def _value(data: bytes) -> JsonValue:
    return STREAM_END if data.strip() == _END else cast(JsonValue, json.loads(data))


def _object_in(text: bytes) -> JsonObject | None:
    """The object that an answer is; Google sends a list with one. None for anything else."""
    try:
        value = cast(JsonValue, json.loads(text))
    except ValueError:
        return None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, dict) else None


def _refusal(answer: bytes, response: httpx.Response) -> RefusedError:
    """The error in an answer; one that says it is fine and is no stream has no status."""
    text, found = answer.decode("utf-8", "replace"), _object_in(answer)
    headers = dict(response.headers)
    if response.is_error:
        return RefusedError(text, response.status_code, found, headers)
    return NoStreamError(f"it sent no event stream: {text}", None, found, headers)
