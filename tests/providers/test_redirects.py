"""Servers of models that redirect: followed where that is safe, else named."""

from collections.abc import Iterator

import pytest

from agent_tui.providers.base import FinishChunk
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.limits import most_retries
from tests.providers.requests import collect, failing, request_at, text_of
from tests.support.loopback import LoopbackServer, QuietHandler
from tests.support.openai_server import Failure, OpenAiServer, Reply

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHATS = "/v1/chat/completions"


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    """A server that gave no reply yet."""
    with OpenAiServer() as running:
        yield running


class Elsewhere(LoopbackServer):
    """Redirects every request to `target`."""

    def __init__(self, target: str, status: int) -> None:
        class Handler(QuietHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(status)
                self.send_header("location", target or self.path.replace("/old", ""))
                self.send_header("content-length", "0")
                self.end_headers()

        super().__init__(Handler)


@pytest.fixture
def moved(server: OpenAiServer) -> OpenAiServer:
    """A server whose models moved from ``/old/v1`` to ``/v1`` of the same address."""
    for status in (307, 308):
        headers = {"location": CHATS}
        server.pages[f"/old{status}{CHATS}"] = Failure(status, "", headers)
    return server


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_on_the_same_server_is_followed_with_body_and_key(
    host: ProviderHost, moved: OpenAiServer, status: int
) -> None:
    moved.play(Reply(text="Here."))
    base_url = moved.base_url.replace("/v1", f"/old{status}/v1")
    chunks = await collect(host, request_at(base_url))
    assert (text_of(chunks), chunks[-1]) == ("Here.", FinishChunk("stop"))
    first, second = moved.requests
    assert (second.method, second.path, second.body) == ("POST", CHATS, first.body)
    assert second.headers["authorization"] == first.headers["authorization"]
    assert second.headers["host"] == f"127.0.0.1:{moved.port}"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_server_is_named_and_gets_no_key(
    host: ProviderHost, server: OpenAiServer, status: int
) -> None:
    with Elsewhere(f"{server.base_url}/chat/completions?token=x", status) as first:
        _, error = await failing(host, request_at(f"{first.url}/v1"))
    assert server.requests == []
    assert (error.kind, most_retries(error)) == ("address", 0)
    assert f"it redirects to {server.base_url}/chat/completions." in error.message
    assert error.hint == f"If that is your server, set base_url to {server.base_url}."


async def test_a_redirect_that_would_change_the_request_is_named(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.pages[f"/old{CHATS}"] = Failure(301, "", {"location": CHATS})
    _, error = await failing(host, request_at(server.base_url.replace("/v1", "/old/v1")))
    assert (error.kind, len(server.requests)) == ("address", 1)
    assert f"set base_url to {server.base_url}" in error.hint


@pytest.mark.parametrize(
    "target",
    ["", CHATS, "http://[::1/v1", "ftp://127.0.0.1/x", f"http://127.0.0.1:1/{'x' * 9_000}"],
    ids=["nowhere", "itself", "malformed", "ftp", "long"],
)
async def test_a_redirect_that_leads_nowhere_ends(
    host: ProviderHost, server: OpenAiServer, target: str
) -> None:
    server.pages[CHATS] = Failure(307, "moved", {"location": target} if target else {})
    _, error = await failing(host, request_at(server.base_url))
    assert (error.kind, most_retries(error)) == ("address", 0)
    assert len(server.requests) <= 5
    assert len(error.message) < 1_000
