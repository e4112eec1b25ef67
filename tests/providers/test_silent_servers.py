"""Servers that are silent, or say nothing, over the real provider."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from agent_tui.providers.base import ModelRequest
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.silence import SilenceLimit, SilenceLimits, Wait
from tests.providers.requests import collect, failing, request_to, text_of
from tests.support.openai_server import NoHeaders, OpenAiServer, Reply
from tests.support.patience import PATIENCE_S
from tests.support.provider_process import LITELLMS, SECRET, SERVED_MODEL, process_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.thorough]

OWN, ANTHROPICS = "some-model", "anthropic/claude-haiku-4-5"
COMMENT = ": keep-alive\n\n"
PING = 'event: ping\ndata: {"type": "ping"}\n\n'


def delta(fields: str) -> str:
    """One event of the chat format."""
    return f'data: {{"id": "x", "created": 1, "choices": [{{"index": 0, "delta": {fields}}}]}}\n\n'


SIGNS = [
    pytest.param(OWN, COMMENT, id="comments"),
    pytest.param(OWN, delta("{}"), id="empty deltas"),
    pytest.param(OWN, delta('{"content": ""}'), id="empty text"),
    pytest.param(ANTHROPICS, PING, id="pings"),
    pytest.param(LITELLMS, COMMENT, id="comments through litellm"),
    pytest.param(LITELLMS, delta("{}"), id="empty deltas through litellm"),
]


def limits(byte_s: float, word_s: float) -> SilenceLimits:
    return SilenceLimits(SilenceLimit(byte_s, word_s), SilenceLimit(byte_s, word_s))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def listening_host(
    worker_environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProviderHost]:
    log = tmp_path_factory.mktemp("listening") / "provider.log"
    running = ProviderHost(log_path=log, environ=worker_environ)
    await running.warm(SERVED_MODEL)
    await running.warm(replace(SERVED_MODEL, name=LITELLMS))
    yield running
    await running.aclose()


def asking(server: OpenAiServer, name: str, silence: SilenceLimits) -> ModelRequest:
    request = request_to(server)
    base_url = server.base_url.removesuffix("/v1") if name == ANTHROPICS else server.base_url
    model = replace(request.model, name=name, base_url=base_url)
    return replace(request, model=model, silence=silence)


@pytest.mark.parametrize(("name", "sign"), SIGNS)
async def test_what_says_nothing_is_life_and_one_request_is_made(
    listening_host: ProviderHost, server: OpenAiServer, name: str, sign: str
) -> None:
    server.play(Reply(text="at last", signs=(sign,) * 60))
    waits: list[Wait] = []
    request = replace(asking(server, name, limits(3, PATIENCE_S)), on_wait=waits.append)
    assert text_of(await collect(listening_host, request)) == "at last"
    assert len(server.chats) == 1
    assert max(wait.word_s for wait in waits) > 3
    assert min(wait.byte_s for wait in waits) < 3


@pytest.mark.parametrize(("name", "sign"), SIGNS)
async def test_what_only_ever_gives_signs_is_given_up(
    listening_host: ProviderHost, server: OpenAiServer, name: str, sign: str
) -> None:
    server.play(Reply(text="never", signs=(sign,) * 10_000))
    _, error = await failing(listening_host, asking(server, name, limits(PATIENCE_S, 1)))
    assert error.kind == "timeout"
    assert "only keep-alives for 1s" in error.message
    assert await asyncio.to_thread(server.wait_for_disconnects)
    assert len(server.chats) == 1


@pytest.mark.parametrize(
    ("name", "thought"),
    [
        (OWN, delta('{"reasoning_content": "hm "}')),
        (OWN, delta('{"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}')),
        (
            ANTHROPICS,
            'data: {"type": "content_block_start", "index": 9, '
            '"content_block": {"type": "redacted_thinking", "data": "x"}}\n\n',
        ),
        (LITELLMS, delta('{"reasoning_content": "hm "}')),
    ],
)
async def test_thinking_is_part_of_a_reply_though_it_be_hidden(
    listening_host: ProviderHost, server: OpenAiServer, name: str, thought: str
) -> None:
    server.play(Reply(text="thought", signs=(thought,) * 50))
    request = asking(server, name, limits(PATIENCE_S, 3))
    assert text_of(await collect(listening_host, request)) == "thought"


@pytest.mark.parametrize("name", [OWN, LITELLMS])
async def test_a_first_byte_that_never_comes_ends_the_request(
    listening_host: ProviderHost, server: OpenAiServer, name: str
) -> None:
    server.play(NoHeaders())
    _, error = await failing(listening_host, asking(server, name, limits(1, PATIENCE_S)))
    assert error.kind == "timeout"
    assert "no data for 1s" in error.message
    assert len(server.chats) == 1


async def test_a_process_that_is_stuck_is_found_though_its_server_may_be_silent(
    tmp_path: Path, worker_environ: dict[str, str], server: OpenAiServer
) -> None:
    host = ProviderHost(log_path=tmp_path / "log", environ=worker_environ, stuck_after_s=6)
    server.play(NoHeaders(), Reply(text="from another process"))
    asked = asyncio.create_task(collect(host, request_to(server, name=LITELLMS)))
    assert await asyncio.to_thread(server.wait_for_requests, 1)
    pid = process_of(host).pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    assert text_of(await asked) == "from another process"
    await host.aclose()


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGKILL, "was killed by signal 9 (SIGKILL), often because the system ran out of"),
        (signal.SIGSEGV, "was killed by signal 11 (SIGSEGV)"),
    ],
)
async def test_what_ended_a_process_is_said(
    tmp_path: Path,
    worker_environ: dict[str, str],
    server: OpenAiServer,
    number: signal.Signals,
    said: str,
) -> None:
    host = ProviderHost(log_path=tmp_path / "log", environ=worker_environ)
    server.play(NoHeaders(), NoHeaders())
    asked = asyncio.create_task(failing(host, request_to(server, name=LITELLMS)))
    for count in (1, 2):  # the first death before a word is made good
        assert await asyncio.to_thread(server.wait_for_requests, count)
        pid = process_of(host).pid
        assert pid is not None
        os.kill(pid, number)
    _, error = await asked
    assert error.kind == "crashed"
    assert said in error.message
    await host.aclose()


async def test_a_process_that_cannot_work_is_told_with_its_last_words(
    tmp_path: Path, worker_environ: dict[str, str], server: OpenAiServer
) -> None:
    program = f"import os\nos.write(2, b'no room for {SECRET}\\n')\nos._exit(3)"
    (tmp_path / "sitecustomize.py").write_text(program)
    environ = {**worker_environ, "PYTHONPATH": str(tmp_path)}
    host = ProviderHost(log_path=tmp_path / "log", environ=environ)
    _, error = await failing(host, request_to(server, name=LITELLMS))
    assert "exited with status 3: no room for" in error.message
    assert SECRET not in error.message
    await host.aclose()
