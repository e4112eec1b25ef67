"""Event streams as they come over HTTP: cut anywhere, in every form that servers give them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import aclosing
from typing import TypeVar

import httpx
import pytest

from agent_tui.messages import JsonObject
from agent_tui.providers.transport import http_client
from agent_tui.providers.transport.http_client import HttpClient
from agent_tui.providers.wires.base import (
    STREAM_END,
    Address,
    LostConnectionError,
    MalformedReplyError,
    RefusedError,
)

_T = TypeVar("_T")

pytestmark = pytest.mark.asyncio

EVENTS: list[JsonObject] = [{"n": 1, "text": "naïve 😀\u2028\r"}, {"n": 2}]
FIRST, SECOND = (json.dumps(event, ensure_ascii=False) for event in EVENTS)


class Pieces(httpx.AsyncByteStream):
    """A body that comes in these pieces, and then breaks if it is to."""

    def __init__(self, pieces: Sequence[bytes], broken_by: Exception | None = None) -> None:
        self._pieces = pieces
        self._broken_by = broken_by

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._broken_by is not None:
            raise self._broken_by


async def _patiently(awaitable: Awaitable[_T]) -> _T:
    return await awaitable


async def read(
    *pieces: bytes,
    content_type: str = "text/event-stream",
    status: int = 200,
    broken_by: Exception | None = None,
) -> list[JsonObject]:
    """The events of an answer that comes in `pieces`."""

    def answer(_request: httpx.Request) -> httpx.Response:
        headers = {"content-type": content_type}
        return httpx.Response(status, headers=headers, stream=Pieces(pieces, broken_by))

    client = HttpClient({}, httpx.MockTransport(answer))
    events = client.events(Address("http://server/v1", {}), b'{"stream": true}', _patiently)
    async with aclosing(events):
        return [event async for event in events]


class EndlessBody(httpx.AsyncByteStream):
    """A body that ends some time after its events, or never; notes how it was left."""

    def __init__(self, *, ends: bool) -> None:
        self._ends = ends
        self.is_read_whole = self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'data: {"n": 1}\n\ndata: [DONE]\n\n'
        yield b": bye\n\n"
        if not self._ends:
            await asyncio.Event().wait()
        self.is_read_whole = True

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("ends", [True, False])
async def test_what_follows_the_last_event_is_read_if_it_comes(ends: bool) -> None:
    """A response must be read to its end before its connection can serve the next request."""
    body = EndlessBody(ends=ends)

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=body)

    client = HttpClient({}, httpx.MockTransport(answer))
    async with aclosing(
        client.events(Address("http://server/v1", {}), b"{}", _patiently)
    ) as events:
        async for event in events:
            if event is STREAM_END:
                break
    assert body.is_read_whole == ends
    assert body.is_closed


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_a_stream_is_the_same_wherever_it_is_cut(newline: str) -> None:
    lines = ["\ufeff: keep-alive", "", "event: x", f"data: {FIRST}", "id: 7", "", f"data:{SECOND}"]
    raw = newline.join((*lines, "", "")).encode()
    for at in range(1, len(raw)):
        assert await read(raw[:at], raw[at:]) == EVENTS


@pytest.mark.parametrize(
    "body",
    [
        f"data: {FIRST}\n\ndata: {SECOND}",  # no line end behind the last
        f"data: {FIRST}\ndata: {SECOND}\n\n",  # no empty line between them
        f"data: {FIRST}\n\n\n\ndata: [1]\n\ndata: 7\n\ndata: {SECOND}\n\n",  # others between
        'data: {"n": 1,\ndata: "text": "naïve 😀\u2028\\r"}\n\n' + f"data: {SECOND}\n\n",
    ],
    ids=["unfinished", "unparted", "others", "in two lines"],
)
async def test_what_servers_make_of_an_event_stream_is_understood(body: str) -> None:
    assert await read(body.encode()) == EVENTS


async def test_the_mark_of_the_end_is_told() -> None:
    assert (await read(b'data: {"n": 1}\n\ndata: [DONE]\n\n'))[-1] is STREAM_END


async def test_a_stream_under_another_type_is_read_all_the_same() -> None:
    body = f"data: {FIRST}\n\ndata: {SECOND}\n\n".encode()
    assert await read(body, content_type="text/plain") == EVENTS


async def test_a_whole_reply_of_a_server_that_does_not_stream_is_one_event() -> None:
    reply = b'{"choices": [{"message": {"content": "Hi."}}]}'
    assert await read(reply, content_type="application/json") == [json.loads(reply)]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b'{"error": {"message": "no"}}', 200, None),
        (b"<html></html>", 200, None),
        (b'[{"error": {"message": "no"}}]', 400, 400),
    ],
    ids=["an error that says it is fine", "a page", "an error in a list"],
)
async def test_an_answer_that_is_no_stream_is_an_error(
    body: bytes, status: int, said: int | None
) -> None:
    with pytest.raises(RefusedError) as caught:
        await read(body, content_type="application/json", status=status)
    assert caught.value.status_code == said
    assert (caught.value.body is not None) == (b"error" in body)


async def test_a_broken_event_and_a_lost_connection_are_told_apart() -> None:
    with pytest.raises(MalformedReplyError):
        await read(b'data: {"n": 1}\n\ndata: {"n":\n\n')
    with pytest.raises(LostConnectionError):
        await read(b'data: {"n": 1}\n\n', broken_by=httpx.ReadError("reset"))


@pytest.mark.parametrize(
    ("piece", "content_type", "status"),
    [
        (b"x" * 1_000, "text/event-stream", 200),
        (b"data: 1\n", "text/event-stream", 200),
        (b"x" * 1_000, "application/json", 200),
        (b"x" * 1_000, "text/html", 500),
    ],
)
async def test_what_a_server_sends_without_end_is_not_collected(
    monkeypatch: pytest.MonkeyPatch, piece: bytes, content_type: str, status: int
) -> None:
    monkeypatch.setattr(http_client, "MAX_EVENT_BYTES", 10_000)
    with pytest.raises(MalformedReplyError, match="an event of more than"):
        await read(*[piece] * 10_000, content_type=content_type, status=status)


async def test_a_stream_may_be_longer_than_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_EVENT_BYTES", 100)
    pieces = [f"data: {FIRST}\n\n".encode(), b": still here\n\n"] * 100
    assert await read(*pieces) == [EVENTS[0]] * 100


async def test_a_connection_that_the_server_closed_meanwhile_costs_no_request() -> None:
    answered: list[int] = []  # connections, in the order of their answers

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer once; close the connection when the next request has come."""
        number = served.pop(0)
        for is_answered in (number < 3, False):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
            if not is_answered:
                break
            answered.append(number)
            body = f"data: {SECOND}\n\n".encode()
            kind = b"content-type: text/event-stream\r\ncontent-length: %d" % len(body)
            writer.write(b"HTTP/1.1 200 OK\r\n" + kind + b"\r\n\r\n" + body)
        writer.close()
        await writer.wait_closed()

    served = [1, 2, 3]
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = Address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", {})
    client = HttpClient({})

    async def ask() -> list[JsonObject]:
        return [event async for event in client.events(address, b"{}", _patiently)]

    assert [await ask(), await ask()] == [[EVENTS[1]]] * 2
    assert answered == [1, 2]
    with pytest.raises(LostConnectionError):  # a new connection is not tried twice
        await ask()
    assert served == []
    await client.aclose()
    server.close()
