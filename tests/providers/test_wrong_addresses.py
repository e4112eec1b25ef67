"""What the person reads, and how often is asked, where no model server is at the address."""

import asyncio
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.events import RetryScheduled, TurnFinished
from agent_tui.messages import UserMessage
from agent_tui.providers.base import FinishChunk, ModelRef, ModelRequest, ProviderError
from agent_tui.providers.faults.classify import provider_error
from agent_tui.providers.litellm.host import ProviderHost
from agent_tui.providers.litellm.protocol import Fault
from agent_tui.providers.retry import MAX_RETRIES, most_retries
from tests.providers.requests import collect, failing, request_to, text_of
from tests.support.certificates import certificate_of
from tests.support.loopback import LoopbackServer, QuietHandler
from tests.support.openai_server import Failure, OpenAiServer, Reply
from tests.support.runtime import Stage, of_kind, only
from tests.support.runtime import collect as happened

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHATS = "/v1/chat/completions"
WELCOME = "<!DOCTYPE html><html><head><title>Welcome to nginx!</title></head></html>"


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    """A server that gave no reply yet."""
    with OpenAiServer() as running:
        yield running


def request_at(base_url: str, name: str = "some-model") -> ModelRequest:
    return ModelRequest(ModelRef(name, base_url, "THE_KEY"), "", (UserMessage(content="hello"),))


async def fails(host: ProviderHost, base_url: str, name: str = "some-model") -> ProviderError:
    return (await failing(host, request_at(base_url, name)))[1]


async def test_a_port_where_nobody_listens_is_tried_three_times(host: ProviderHost) -> None:
    error = await fails(host, "http://127.0.0.1:1/v1")
    assert (error.kind, most_retries(error)) == ("network", 2)
    assert "it refused the connection" in error.message


async def test_a_name_that_is_not_found_is_tried_three_times() -> None:
    fault = Fault("LostConnectionError", "", causes=["ConnectError", "ConnectError", "gaierror"])
    error = provider_error(fault, ModelRef("some-model", "http://nowhere.invalid/v1"))
    assert (error.kind, most_retries(error)) == ("network", 2)
    assert "its name was not found" in error.message


async def test_a_server_that_answered_before_is_waited_for(host: ProviderHost) -> None:
    with OpenAiServer() as server:
        server.play(Reply(text="Hi."))
        await collect(host, request_to(server))
        base_url = server.base_url
    error = await fails(host, base_url)
    assert (error.kind, error.has_answered, most_retries(error)) == ("network", True, MAX_RETRIES)


PAGES = {
    "a web page": (
        Failure(200, WELCOME, content_type="text/html"),
        "it sent a web page: “Welcome to nginx!”",
    ),
    "a text": (
        Failure(200, "Ollama is running", content_type="text/plain"),
        "it sent a text that is no reply: “Ollama is running”",
    ),
    "another object": (Failure(200, '{"status": "ok"}'), "a text that is no reply"),
    "LM Studio": (
        Failure(200, '{"error": "Unexpected endpoint or method. (POST /x)"}'),
        "Unexpected endpoint",
    ),
    "a page that is not there": (
        Failure(404, "<html><title>404</title></html>", content_type="text/html"),
        "it has nothing there (404)",
    ),
    "a path that is not there": (Failure(404, '{"detail":"Not Found"}'), "nothing there"),
    "a text for a path": (Failure(404, "404 page not found"), "nothing there"),
}


@pytest.mark.parametrize(("answer", "words"), PAGES.values(), ids=PAGES)
async def test_what_is_no_model_server_is_asked_once_and_told(
    host: ProviderHost, server: OpenAiServer, answer: Failure, words: str
) -> None:
    server.pages[CHATS] = answer
    error = await fails(host, server.base_url)
    assert (error.kind, most_retries(error)) == ("address", 0)
    assert words in error.message
    assert error.hint == "Check base_url: for most servers it ends in /v1."
    assert "<" not in error.message


async def test_a_web_page_behind_replies_is_waited_out(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="Hi."))
    await collect(host, request_to(server))
    server.pages[CHATS] = Failure(200, WELCOME, content_type="text/html")  # of a hotel, say
    assert most_retries(await fails(host, server.base_url)) == MAX_RETRIES


async def test_an_empty_answer_is_no_page(host: ProviderHost, server: OpenAiServer) -> None:
    server.pages[CHATS] = Failure(200, "", content_type="text/plain")
    assert (await fails(host, server.base_url)).kind == "server"


@pytest.mark.parametrize("base_url", ["htp://127.0.0.1/v1", "http://[::1/v1", "127.0.0.1:8080/v1"])
async def test_what_is_no_address_is_said_at_once(host: ProviderHost, base_url: str) -> None:
    error = await fails(host, base_url)
    assert (error.kind, most_retries(error)) == ("address", 0)
    assert "is no web address" in error.message
    assert "http://" in error.hint


async def test_a_certificate_that_is_not_trusted_is_said_at_once(
    host: ProviderHost, tmp_path: Path
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate_of("localhost", tmp_path))
    with LoopbackServer(QuietHandler, tls) as server:
        error = await fails(host, f"https://localhost:{server.port}/v1")
    assert (error.kind, most_retries(error)) == ("address", 0)
    assert "its certificate is not one that this machine trusts" in error.message
    assert "SSL_CERT_FILE" in error.hint


async def test_a_server_that_speaks_no_tls_is_said_at_once(host: ProviderHost) -> None:
    with LoopbackServer(QuietHandler) as server:
        error = await fails(host, f"https://127.0.0.1:{server.port}/v1")
    assert (error.kind, most_retries(error)) == ("address", 0)
    assert "TLS" in error.message
    assert "http://" in error.hint


# Redirects


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
        error = await fails(host, f"{first.url}/v1")
    assert server.requests == []
    assert (error.kind, most_retries(error)) == ("address", 0)
    assert f"it redirects to {server.base_url}/chat/completions." in error.message
    assert error.hint == f"If that is the server, set base_url to {server.base_url}."


async def test_a_redirect_that_would_change_the_request_is_named(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.pages[f"/old{CHATS}"] = Failure(301, "", {"location": CHATS})
    error = await fails(host, server.base_url.replace("/v1", "/old/v1"))
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
    error = await fails(host, server.base_url)
    assert (error.kind, most_retries(error)) == ("address", 0)
    assert len(server.requests) <= 5
    assert len(error.message) < 1_000


async def test_each_fault_is_tried_as_often_as_it_may_mend_itself(
    tmp_path: Path, host: ProviderHost, server: OpenAiServer
) -> None:
    waited: list[float] = []

    async def sleep(delay_s: float) -> None:
        waited.append(delay_s)
        await asyncio.sleep(0)

    async def tries(base_url: str) -> int:
        waited.clear()
        model = ModelRef("some-model", base_url, "THE_KEY")
        runtime = Stage(tmp_path).runtime(host, model=model, sleep=sleep, is_interactive=False)
        events = await happened(runtime.submit("hello"))
        assert only(events, TurnFinished).outcome == "error"
        assert len(of_kind(events, RetryScheduled)) == len(waited)
        assert all(event.max_attempts == len(waited) for event in of_kind(events, RetryScheduled))
        await runtime.aclose()
        return 1 + len(waited)

    server.pages[CHATS] = Failure(200, WELCOME, content_type="text/html")
    assert await tries(server.base_url) == 1
    server.pages[CHATS] = Failure(503, json.dumps({"error": {"message": "busy"}}))
    assert await tries(server.base_url) == 10
    assert await tries("http://127.0.0.1:2/v1") == 3
