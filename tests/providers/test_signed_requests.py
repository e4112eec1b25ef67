"""Requests that an account authorizes in place of a key."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

import httpx
import pytest

from agent_tui.messages import JsonObject
from agent_tui.providers.transport.http_client import HttpClient
from agent_tui.providers.wires.base import Address, Framing, InTime, RedirectError

_T = TypeVar("_T")

pytestmark = pytest.mark.asyncio


async def _patiently(awaitable: Awaitable[_T]) -> _T:
    return await awaitable


@dataclass
class Account:
    """Writes the url that it signs into a header."""

    is_for_one_address: bool

    def headers(self, url: str, content: bytes) -> Mapping[str, str]:
        return {"signed": f"{url} {content.decode()}"}


@dataclass(frozen=True)
class Signing:
    """Opens an account; equal if `region` is."""

    region: str
    is_for_one_address: bool = True
    opened: list[str] = field(default_factory=list[str], compare=False)

    def __call__(self, environ: Mapping[str, str]) -> Account:
        self.opened.append(environ["WHO"])
        return Account(self.is_for_one_address)


class Server:
    """Redirects from ``/from``, and answers elsewhere with `content_type`."""

    def __init__(self, content_type: str = "text/event-stream") -> None:
        self.signed: list[str] = []
        self._content_type = content_type
        self.client = HttpClient({"WHO": "me"}, httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.signed.append(request.headers["signed"])
        if request.url.path == "/from":
            return httpx.Response(308, headers={"location": "/to"})
        headers = {"content-type": self._content_type}
        return httpx.Response(200, headers=headers, content=b'data: {"n": 1}\n\n')

    async def ask(self, address: Address) -> list[JsonObject]:
        async with aclosing(self.client.events(address, b"{}", _patiently)) as events:
            return [event async for event in events]


async def test_one_account_signs_all_requests_to_equal_places():
    server, signing = Server(), Signing("a")
    for url in ("http://a/1", "http://a/2"):
        await server.ask(Address(url, {}, Signing("a", opened=signing.opened)))
    assert server.signed == ["http://a/1 {}", "http://a/2 {}"]
    assert signing.opened == ["me"]
    await server.ask(Address("http://b", {}, Signing("b", opened=signing.opened)))
    assert signing.opened == ["me", "me"]


async def test_a_redirect_is_followed_only_if_the_signature_is_valid_there():
    server = Server()
    with pytest.raises(RedirectError):
        await server.ask(Address("http://a/from", {}, Signing("a")))
    assert await server.ask(Address("http://a/from", {}, Signing("b", False))) == [{"n": 1}]


async def test_a_stream_in_another_framing_is_read_by_the_address():
    async def read(
        pieces: AsyncIterator[bytes], in_time: InTime
    ) -> AsyncGenerator[JsonObject, None]:
        while (piece := await in_time(anext(pieces, None))) is not None:
            yield {"read": len(piece)}

    address = Address("http://a", {}, Signing("a"), Framing("application/frames", read))
    assert await Server("application/frames; v=1").ask(address) == [{"read": 16}]
    assert await Server().ask(address) == [{"n": 1}]
