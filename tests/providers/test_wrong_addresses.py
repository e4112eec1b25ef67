"""What the person reads, and how often is asked, where no model server is at the address."""

import io
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from agent_tui.features.print.printer import ExitCode, print_turn
from agent_tui.providers.base import ModelRef
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.limits import MAX_RETRIES, most_retries
from tests.faults.conversation import Waits
from tests.providers.protocols import EVENTS, TOKENS, Protocol, in_each_protocol, stream_of
from tests.providers.requests import failing, request_at
from tests.support.certificates import certificate_of
from tests.support.loopback import LoopbackServer, QuietHandler
from tests.support.model_servers import listening
from tests.support.openai_server import Failure, OpenAiServer
from tests.support.runtime import Stage, collect

pytestmark = pytest.mark.asyncio(loop_scope="session")

NEW = "/new"
"""Begins the path of an address that gave no reply yet, whatever its port served before."""


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    """A server that gave no reply yet."""
    with OpenAiServer() as running:
        yield running


class Program:
    """Turns of ``-p`` with a model at `base_url`; nothing is waited for."""

    def __init__(self, folder: Path, host: ProviderHost, base_url: str, name: str) -> None:
        self._waits = Waits()
        model = ModelRef(name, base_url, "THE_KEY")
        stage = Stage(folder)
        sleep = self._waits.sleep
        self.runtime = stage.runtime(host, model=model, sleep=sleep, is_interactive=False)

    async def fails(self) -> tuple[int, str]:
        """How often is asked, and the last line on stderr."""
        self._waits.delays_s.clear()
        out, err = io.StringIO(), io.StringIO()
        code = await print_turn(self.runtime, "hello", "text", out=out, err=err)
        assert (code, out.getvalue()) == (ExitCode.FAILED, "")
        *waits, last = err.getvalue().splitlines()
        assert len(waits) == len(self._waits.delays_s)
        assert last.startswith("agent-tui: ")
        return 1 + len(waits), last


@pytest_asyncio.fixture(loop_scope="session")
async def program(
    tmp_path: Path, host: ProviderHost
) -> AsyncIterator[Callable[[str, Protocol], Program]]:
    """Programs whose model is at an address that gave no reply yet."""
    begun: list[Program] = []

    def begin(address: str, protocol: Protocol) -> Program:
        begun.append(Program(tmp_path, host, f"{address}{NEW}/v1", protocol.model))
        return begun[-1]

    yield begin
    for one in begun:
        await one.runtime.aclose()


# Nobody, or nobody who speaks HTTP


@contextmanager
def nobody(_folder: Path) -> Iterator[str]:
    yield "http://127.0.0.1:1"


@contextmanager
def no_such_name(_folder: Path) -> Iterator[str]:
    yield "http://nowhere.invalid"


@contextmanager
def untrusted(folder: Path) -> Iterator[str]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate_of("localhost", folder))
    with LoopbackServer(QuietHandler, tls) as server:
        yield f"https://localhost:{server.port}"


@contextmanager
def tls_asked_without(folder: Path) -> Iterator[str]:
    with untrusted(folder) as address:
        yield address.replace("https", "http")


@contextmanager
def no_tls(_folder: Path) -> Iterator[str]:
    with LoopbackServer(QuietHandler) as server:
        yield server.url.replace("http", "https")


def sending(raw: bytes) -> Callable[[Path], AbstractContextManager[str]]:
    """A server that sends `raw` and hangs up."""

    @contextmanager
    def sender(_folder: Path) -> Iterator[str]:
        with listening(lambda connection, _stopped: connection.sendall(raw)) as port:
            yield f"http://127.0.0.1:{port}"

    return sender


PLACES = {
    "a port where nobody listens": (
        nobody,
        3,
        "connection refused. Check that the server",
    ),
    "a name that is not found": (no_such_name, 3, "host name not found. Check base_url"),
    "one that hangs up": (sending(b""), 3, "connection lost. Check that the server is running"),
    "TLS asked without": (tls_asked_without, 3, "connection lost."),
    "another protocol": (
        sending(b"\x15\x03\x01\x00\x02\x02\x70"),  # an alert of TLS
        1,
        "does not speak HTTP. Check the port in base_url, or use https:// there.",
    ),
    "no TLS": (
        no_tls,
        1,
        "TLS handshake failed. If the server does not use TLS, set base_url to http://",
    ),
    "a certificate that is not trusted": (
        untrusted,
        1,
        "its certificate is not trusted. If you trust it, set SSL_CERT_FILE to",
    ),
}
"""How often is asked at first, and what is said."""


@in_each_protocol
@pytest.mark.parametrize(("place", "tries", "words"), PLACES.values(), ids=PLACES)
async def test_a_place_without_a_server_is_told_after_few_tries(
    program: Callable[[str, Protocol], Program],
    tmp_path: Path,
    protocol: Protocol,
    place: Callable[[Path], AbstractContextManager[str]],
    tries: int,
    words: str,
) -> None:
    with place(tmp_path) as address:
        asked, said = await program(address, protocol).fails()
    assert asked == tries
    assert words in said


@pytest.mark.parametrize("base_url", ["htp://127.0.0.1/v1", "http://[::1/v1", "127.0.0.1:8080/v1"])
async def test_what_is_no_address_is_said_at_once(host: ProviderHost, base_url: str) -> None:
    _, error = await failing(host, request_at(base_url))
    assert (error.kind, most_retries(error)) == ("address", 0)
    assert "is not a web address" in error.message
    assert "http://" in error.hint


# Something else than replies


def page(status: int, title: str) -> Failure:
    return Failure(status, f"<html><title>{title}</title></html>", content_type="text/html")


def refusal(status: int, message: str) -> Failure:
    return Failure(status, json.dumps({"error": {"message": message}}))


CHECK = "Check base_url: most end in /v1."
WELCOME = page(200, "Welcome to nginx!")
EMPTY = Failure(200, "")
ANSWERS = {
    "a web page": (WELCOME, 1, f"it returned a web page: “Welcome to nginx!”. {CHECK}"),
    "a text": (
        Failure(200, "Ollama is running", content_type="text/plain"),
        1,
        f"it returned text that is not a reply: “Ollama is running”. {CHECK}",
    ),
    "another object": (Failure(200, '{"status": "ok"}'), 1, "text that is not a reply"),
    "LM Studio": (
        Failure(200, '{"error": "Unexpected endpoint or method. (POST /x)"}'),
        1,
        "Unexpected endpoint",
    ),
    "a page that is not there": (page(404, "404"), 1, f"nothing found there (404). {CHECK}"),
    "a path that is not there": (
        Failure(404, '{"detail":"Not Found"}'),
        1,
        "nothing found there (404)",
    ),
    "nothing at all": (Failure(404, ""), 1, "nothing found there (404)"),
    "a text for a path": (Failure(404, "404 page not found"), 1, "nothing found there (404)"),
    "files alone": (page(405, "405"), 1, f"it does not accept requests there (405). {CHECK}"),
    "a route for reading": (
        Failure(405, '{"detail":"Method Not Allowed"}'),
        1,
        "not accept requests",
    ),
    "a refusal of tools": (refusal(405, "No tools here"), 1, "No tools here. Switch models"),
    "http.server": (page(501, "Unsupported method"), 1, "it does not accept requests there (501)"),
    "a server of embeddings": (refusal(501, "No completions here"), 1, "No completions here."),
    "an answer without a word": (EMPTY, 3, "it sent no reply."),
    "a stream without a word": (
        Failure(200, "", content_type="text/event-stream"),
        3,
        "it sent no reply. Try again later, or check base_url",
    ),
    "pings and no more": (
        Failure(200, ": ping\n\ndata: {}\n\n", content_type="text/event-stream"),
        3,
        "it sent no reply.",
    ),
    "a stream of something else": (
        Failure(200, "data: hello\n\n", content_type="text/event-stream"),
        2,  # it breaks twice alike
        "its reply is not valid JSON.",
    ),
    "an error that nobody knows": (Failure(200, '{"error": "no such route"}'), 3, "no such route"),
    "a bad gateway": (page(502, "502 Bad Gateway"), 10, "502 Bad Gateway"),
    "a busy server": (refusal(503, "busy"), 10, "busy"),
    "too fast": (refusal(429, "slow down"), 10, "slow down"),
}
"""How often is asked at first, and what is said."""


def put(server: OpenAiServer, protocol: Protocol, answer: Failure) -> None:
    """Have `server` answer with `answer`, also where another protocol is tried in its place."""
    for path in (protocol.path, f"{protocol.path}?alt=sse", EVENTS["completions"].path):
        server.pages[f"{NEW}{path}"] = answer


@in_each_protocol
@pytest.mark.parametrize(("answer", "tries", "words"), ANSWERS.values(), ids=ANSWERS)
async def test_what_cannot_mend_itself_is_asked_once_and_told(
    program: Callable[[str, Protocol], Program],
    server: OpenAiServer,
    protocol: Protocol,
    answer: Failure,
    tries: int,
    words: str,
) -> None:
    put(server, protocol, answer)
    asked, said = await program(f"http://127.0.0.1:{server.port}", protocol).fails()
    assert asked == tries
    assert {request.path for request in server.requests} <= server.pages.keys()
    assert len(server.requests) <= tries + 1  # another protocol, where this may be unknown there
    assert words in said
    assert "<" not in said


@in_each_protocol
async def test_after_a_reply_patience_is_long(
    program: Callable[[str, Protocol], Program], protocol: Protocol
) -> None:
    with OpenAiServer() as server:
        running = program(f"http://127.0.0.1:{server.port}", protocol)
        put(server, protocol, stream_of(protocol.events("Hi.", "r1", TOKENS)))
        await collect(running.runtime.submit("hello"))
        for answer in (WELCOME, page(404, "404"), EMPTY):  # of a hotel, of a server that begins
            put(server, protocol, answer)
            assert (await running.fails())[0] == 1 + MAX_RETRIES
    assert (await running.fails())[0] == 1 + MAX_RETRIES  # nobody is there
