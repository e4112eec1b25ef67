"""Event streams over HTTP (server-sent events), read as JSON objects; only the worker has httpx."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

import httpx
from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.providers.wires.base import STREAM_END, Address, InTime, RefusedError

_CONNECT_TIMEOUT_S = 30.0
_KEEP_ALIVE_S = 120.0
"""A tool may run between two requests of a turn; servers close earlier if they want to."""
_EVENT_STREAM = "text/event-stream"
_END = b"[DONE]"


class HttpClient:
    """A client that never gives up on a silent stream by itself; connections are kept."""

    def __init__(self) -> None:
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),
            limits=httpx.Limits(keepalive_expiry=_KEEP_ALIVE_S),
        )

    async def events(
        self, address: Address, body: JsonObject, in_time: InTime
    ) -> AsyncGenerator[JsonObject, None]:
        """Post `body` and yield the objects of the stream; closing this closes the connection.

        Args:
            address: Where to.
            body: Sent as JSON.
            in_time: Waits for the answer and for each of its pieces, comments included.

        Raises:
            RefusedError: the answer is an error, or no event stream.
            httpx.HTTPError: the connection failed.
        """
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"content-type": "application/json", "accept": _EVENT_STREAM, **address.headers}
        request = self._http.build_request("POST", address.url, content=content, headers=headers)
        response = await in_time(self._http.send(request, stream=True))
        try:
            if response.is_error:
                raise await in_time(_refusal(response, response.status_code))
            if not response.headers.get("content-type", "").startswith(_EVENT_STREAM):
                raise await in_time(_refusal(response, None))
            async with aclosing(_data(response.aiter_bytes(), in_time)) as events:
                async for data in events:
                    if (event := _object(data)) is not None:
                        yield event
        finally:
            await response.aclose()


async def _data(pieces: AsyncIterator[bytes], in_time: InTime) -> AsyncGenerator[bytes, None]:
    """The ``data`` of each event.

    Lines end in LF or CRLF and at nothing else: text of a model may hold any other separator.
    """
    waiting: list[bytes] = []
    data: list[bytes] = []
    while (piece := await in_time(anext(pieces, None))) is not None:
        *ended, rest = piece.split(b"\n")
        for end in ended:
            line = b"".join((*waiting, end)).removesuffix(b"\r")
            waiting.clear()
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data)
                data.clear()
        if rest:
            waiting.append(rest)
    last = b"".join(waiting).removesuffix(b"\r")
    if last.startswith(b"data:"):
        data.append(last[5:])
    if data:
        yield b"\n".join(data)


def _object(data: bytes) -> JsonObject | None:
    """The object an event holds, or `STREAM_END`; None for anything else.

    Raises:
        ValueError: it is broken.
    """
    if data.strip() == _END:
        return STREAM_END
    value = cast(JsonValue, json.loads(data))
    return value if isinstance(value, dict) else None


async def _refusal(response: httpx.Response, status: int | None) -> RefusedError:
    """The error in an answer; one that says it is fine and is no stream has no status."""
    text = (await response.aread()).decode("utf-8", "replace")
    try:
        found = _object(text.encode())
    except ValueError:
        found = None
    if status is None:
        text = f"it sent no event stream: {text}"
    return RefusedError(text, status, found, dict(response.headers))
