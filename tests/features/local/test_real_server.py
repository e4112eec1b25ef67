"""The real server with a real, tiny model: what it takes, refuses and leaves behind."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
import pytest_asyncio

from agent_tui.features.local.model import LocalModel
from agent_tui.features.local.pool import LocalServers
from agent_tui.features.local.provider import LocalProvider
from agent_tui.features.local.settings import LocalSettings
from agent_tui.messages import JsonObject, UserMessage
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelRef,
    ModelRequest,
    ProviderError,
    TriggeredGrammar,
    UsageChunk,
)
from agent_tui.providers.host import ProviderHost
from tests.features.local.rig import Shelf, is_gone, is_refused, until
from tests.providers.requests import collect, failing, text_of
from tests.support.provider_process import LOCAL_KEY

pytestmark = [pytest.mark.real_model, pytest.mark.asyncio(loop_scope="session")]

REPOSITORY = Path(__file__).parents[3]
WINDOW = 2_048
MARKER = "xylophone-in-the-attic"
RULES = " ".join(f"Rule {number}: be polite." for number in range(60))
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "size": {"enum": ["s", "l"]}},
    "required": ["city", "size"],
    "additionalProperties": False,
}
CALL_GRAMMAR = TriggeredGrammar(
    text='root ::= "<tool_call>" "{\\"name\\": \\"ls\\"}" "</tool_call>"', trigger="<tool_call>"
)
PARENT = """
import asyncio, os, sys
from pathlib import Path
from agent_tui.config import Settings
from agent_tui.features.local.model import LocalModel
from agent_tui.features.local.pool import LocalServers
from agent_tui.features.local.provider import LocalProvider
from tests.features.local.rig import Shelf
from tests.support.provider_process import LOCAL_KEY

async def main():
    path, log_path = Path(sys.argv[1]), Path(sys.argv[2])
    shelf = Shelf(LocalModel(name="tiny", path=path, size_bytes=1))
    servers = LocalServers(shelf, Settings(local={"context": 512}).local, log_path, LOCAL_KEY)
    provider = LocalProvider(None, servers)
    print((await provider.start_server("tiny")).url, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def provider_of(path: Path, host: ProviderHost, log_path: Path) -> LocalProvider:
    """A provider of one model, ``tiny``, with a small window."""
    model = LocalModel(name="tiny", path=path, size_bytes=path.stat().st_size)
    settings = LocalSettings(context=WINDOW)
    return LocalProvider(host, LocalServers(Shelf(model), settings, log_path, LOCAL_KEY))


@pytest.fixture(scope="module")
def log_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the shared server's stderr goes."""
    return tmp_path_factory.mktemp("local") / "server.log"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def local(
    real_model_file: Path, host: ProviderHost, log_path: Path
) -> AsyncIterator[LocalProvider]:
    """The provider, whose server all tests here share unless they kill it."""
    provider = provider_of(real_model_file, host, log_path)
    yield provider
    await provider.aclose()


def ask(
    text: str,
    *,
    system: str = "Be brief.",
    limit: int = 16,
    schema: JsonObject | None = None,
    grammar: TriggeredGrammar | None = None,
) -> ModelRequest:
    """A request to the model."""
    return ModelRequest(
        ModelRef("local/tiny"),
        system,
        (UserMessage(content=text),),
        max_output_tokens=limit,
        reply_schema=schema,
        grammar=grammar,
    )


def usage_of(chunks: list[Chunk]) -> UsageChunk:
    """The token counts of a reply."""
    return next(chunk for chunk in chunks if isinstance(chunk, UsageChunk))


async def test_it_answers_and_counts_its_tokens(local: LocalProvider) -> None:
    chunks = await collect(local, ask("What is the capital of France?"))
    assert text_of(chunks).strip()
    assert isinstance(chunks[-1], FinishChunk)
    counted = usage_of(chunks).usage
    assert not counted.is_estimate
    assert counted.output <= 16


async def test_the_window_is_read_back_from_the_server(local: LocalProvider) -> None:
    served = await local.start_server("tiny")
    assert (served.window, served.trained_window) == (WINDOW, 8_192)
    assert (served.knows_tools, served.has_template) == (False, True)


async def test_a_prompt_larger_than_the_window_is_told_as_such(local: LocalProvider) -> None:
    _, error = await failing(local, ask(f"{MARKER} " * WINDOW))
    assert error.kind == "context_overflow"


async def test_a_reply_is_held_to_a_json_schema(local: LocalProvider) -> None:
    reply = text_of(await collect(local, ask("Name a city.", limit=80, schema=SCHEMA)))
    assert set(json.loads(reply)) == {"city", "size"}


async def test_a_reply_is_free_before_the_trigger_of_a_grammar(local: LocalProvider) -> None:
    question = "What is the capital of France?"
    reply = text_of(await collect(local, ask(question, grammar=CALL_GRAMMAR)))
    assert reply.strip()
    assert "<tool_call>" not in reply


async def test_a_reply_is_held_to_a_grammar_from_its_trigger_on(local: LocalProvider) -> None:
    grammar = TriggeredGrammar(text='root ::= " " [a-z ]* "over and out"', trigger=" ")
    reply = text_of(await collect(local, ask("Tell me of the sea.", limit=12, grammar=grammar)))
    first, space, rest = reply.partition(" ")
    assert first + space
    assert rest == "".join(re.findall("[a-z ]", rest))


async def test_a_grammar_that_is_none_is_refused(local: LocalProvider) -> None:
    broken = TriggeredGrammar(text="root is no rule", trigger="<")
    _, error = await failing(local, ask("Hello", grammar=broken))
    assert error.kind == "bad_request"


async def test_two_requests_at_once_are_both_answered(local: LocalProvider) -> None:
    replies = await asyncio.gather(
        collect(local, ask("Count to three.")), collect(local, ask("Name a colour."))
    )
    assert all(isinstance(reply[-1], FinishChunk) for reply in replies)


async def test_what_was_read_ahead_is_not_read_again(local: LocalProvider) -> None:
    await local.prefill(ModelRequest(ModelRef("local/tiny"), RULES, ()))
    counted = usage_of(await collect(local, ask("Hello", system=RULES, limit=1))).usage
    assert counted.cache_read > 400
    assert counted.input < 20


async def test_a_request_that_is_cancelled_is_not_read_to_its_end(local: LocalProvider) -> None:
    await local.start_server("tiny")
    (server,) = (psutil.Process(pid) for pid in local.servers.pids)
    idle_cpu_s = server.cpu_times().user
    long_request = ask("Hello", system=f"{MARKER}. {RULES} {RULES}", limit=1)
    request = asyncio.create_task(collect(local, long_request))
    await until(lambda: server.cpu_times().user > idle_cpu_s + 0.1)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    counted = usage_of(await collect(local, long_request)).usage
    assert counted.input + counted.cache_read > 800
    assert counted.input > 60


async def test_it_listens_on_this_machine_only(local: LocalProvider) -> None:
    url = (await local.start_server("tiny")).url
    (pid,) = local.servers.pids
    listening = [
        connection.laddr
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert [(address.ip, address.port) for address in listening] == [
        ("127.0.0.1", urlsplit(url).port)
    ]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/chat/completions"),
        ("POST", "/completion"),
        ("POST", "/tokenize"),
        ("GET", "/props"),
        ("GET", "/v1/models"),
        ("GET", "/slots"),
        ("GET", "/metrics"),
    ],
)
@pytest.mark.parametrize("key", ["", "Bearer wrong"])
async def test_nothing_is_told_without_the_key(
    local: LocalProvider, method: str, path: str, key: str
) -> None:
    netloc = urlsplit((await local.start_server("tiny")).url).netloc
    status, origin = await asyncio.to_thread(_answer_to, netloc, method, path, key)
    assert status == 401
    assert origin in (None, "")


def _answer_to(netloc: str, method: str, path: str, key: str) -> tuple[int, str | None]:
    connection = HTTPConnection(netloc)
    try:
        headers = {"Authorization": key} if key else {}
        connection.request(method, path, "{}", {"Origin": "http://page.example", **headers})
        answer = connection.getresponse()
        return answer.status, answer.headers["Access-Control-Allow-Origin"]
    finally:
        connection.close()


async def test_the_log_holds_no_prompt_and_no_key(local: LocalProvider, log_path: Path) -> None:
    await failing(local, ask(f"{MARKER} " * WINDOW))
    await collect(local, ask(MARKER))
    log = log_path.read_text(encoding="utf-8")
    assert MARKER not in log
    assert LOCAL_KEY not in log


async def test_the_key_is_not_in_the_command_line(local: LocalProvider) -> None:
    await local.start_server("tiny")
    (pid,) = local.servers.pids
    process = psutil.Process(pid)
    assert LOCAL_KEY not in " ".join(process.cmdline())
    assert LOCAL_KEY not in process.environ().values()


async def test_killed_while_idle_it_is_replaced(local: LocalProvider) -> None:
    await local.start_server("tiny")
    (pid,) = local.servers.pids
    os.kill(pid, signal.SIGKILL)
    assert isinstance((await collect(local, ask("Hello")))[-1], FinishChunk)
    assert local.servers.pids != (pid,)


async def test_killed_in_mid_stream_it_is_a_crash_and_replaced(local: LocalProvider) -> None:
    stream = local.stream(ask("Tell me a very long story.", limit=1_900))
    async with aclosing(stream):
        await anext(stream)
        (pid,) = local.servers.pids
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ProviderError, match="exited mid-reply") as raised:
            async for _ in stream:
                pass
    assert raised.value.kind == "crashed"
    assert isinstance((await collect(local, ask("Hello")))[-1], FinishChunk)


async def test_closing_leaves_no_process_and_no_port(
    real_model_file: Path, host: ProviderHost, tmp_path: Path
) -> None:
    provider = provider_of(real_model_file, host, tmp_path / "log")
    url = (await provider.start_server("tiny")).url
    (pid,) = provider.servers.pids
    await provider.aclose()
    assert is_gone(pid)
    assert is_refused(url)


async def test_killed_with_its_program_it_frees_its_port(
    real_model_file: Path, tmp_path: Path
) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", PARENT, str(real_model_file), str(tmp_path / "log")),
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    url = (await parent.stdout.readline()).decode().strip()
    (server,) = psutil.Process(parent.pid).children()
    parent.kill()
    await parent.wait()
    await until(lambda: is_gone(server.pid) and is_refused(url))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
async def test_a_load_ends_with_the_program_that_asked_for_it(
    real_model_file: Path, tmp_path: Path
) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", PARENT, str(real_model_file), str(tmp_path / "log")),
        cwd=REPOSITORY,
    )
    children: list[psutil.Process] = []

    def is_loading() -> bool:
        children[:] = psutil.Process(parent.pid).children()
        maps = [Path(f"/proc/{child.pid}/maps") for child in children]
        return any(str(real_model_file) in path.read_text(encoding="utf-8") for path in maps)

    await until(is_loading)
    (child,) = children
    child.suspend()  # as good as a load that takes for ever: it cannot see its stdin close
    try:
        parent.kill()
        await parent.wait()
        await until(lambda: is_gone(child.pid))
    finally:
        if not is_gone(child.pid):
            child.kill()


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _of_unknown_kind(data: bytes) -> bytes:
    return data.replace(b"\0\0\0llama\x0c", b"\0\0\0xlama\x0c", 1)


def _of_endless_layers(data: bytes) -> bytes:
    """Over this one llama.cpp aborts its process."""
    return data.replace(
        b"llama.block_count\x04\0\0\0\x1e\0", b"llama.block_count\x04\0\0\0\xff\xff"
    )


def _no_gguf(data: bytes) -> bytes:
    return b"hello" + data[5:1_000]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_cut, " is incomplete: "),
        (_of_unknown_kind, "unknown model architecture: 'xlama'"),
        (_of_endless_layers, "GGML_ASSERT"),
        (_no_gguf, "is not a GGUF file"),
    ],
)
async def test_a_file_that_cannot_be_loaded_is_one_clear_error(
    real_model_file: Path,
    host: ProviderHost,
    tmp_path: Path,
    damage: Callable[[bytes], bytes],
    words: str,
) -> None:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(damage(real_model_file.read_bytes()))
    provider = provider_of(path, host, tmp_path / "log")
    with pytest.raises(ProviderError) as raised:
        await provider.start_server("tiny")
    path.unlink()
    assert not raised.value.is_retryable
    assert words in raised.value.message
    assert str(path) in raised.value.message
    await provider.aclose()
