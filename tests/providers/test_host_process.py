"""The provider process: killed, closed, orphaned, and whom it connects to."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import aclosing
from pathlib import Path

import psutil
import pytest

from agent_tui.providers.base import (
    ProviderError,
)
from agent_tui.providers.litellm.host import ProviderHost
from tests.providers.requests import collect, request_to, text_of
from tests.support.openai_server import (
    NoHeaders,
    OpenAiServer,
    Reply,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.thorough
async def test_a_killed_process_is_replaced_once_when_nothing_had_come(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(NoHeaders(), Reply(text="second try"))
    task = asyncio.create_task(collect(host, request_to(server)))
    assert await asyncio.to_thread(server.wait_for_requests, 1)
    first_pid = host.pid
    assert first_pid is not None
    os.kill(first_pid, signal.SIGKILL)
    assert text_of(await task) == "second try"
    assert host.pid != first_pid


async def test_a_process_killed_in_mid_stream_is_a_crash_and_the_next_request_works(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="so far", ending="hold"), Reply(text="alive"))
    stream = host.stream(request_to(server))
    async with aclosing(stream):
        await anext(stream)
        assert host.pid is not None
        os.kill(host.pid, signal.SIGKILL)
        with pytest.raises(ProviderError) as raised:
            async for _ in stream:
                pass
    assert raised.value.kind == "crashed"
    assert text_of(await collect(host, request_to(server))) == "alive"


async def test_closing_leaves_no_process(tmp_path: Path, worker_environ: dict[str, str]) -> None:
    host = ProviderHost(log_path=tmp_path / "log", idle_timeout_s=5, environ=worker_environ)
    host.start()
    while host.pid is None:
        await asyncio.sleep(0)
    pid = host.pid
    await host.aclose()
    assert not psutil.pid_exists(pid)
    assert host.pid is None


@pytest.mark.thorough
async def test_a_process_whose_parent_was_killed_ends_by_itself(
    tmp_path: Path, worker_environ: dict[str, str]
) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(tmp_path / "log"), env=worker_environ, stdout=PIPE
    )
    assert parent.stdout is not None
    worker = psutil.Process(int(await parent.stdout.readline()))
    parent.kill()
    await parent.wait()
    await asyncio.to_thread(worker.wait, 20)
    assert not worker.is_running()


async def test_only_this_machine_is_ever_connected_to(
    host: ProviderHost, server: OpenAiServer, connections: Path
) -> None:
    server.play(Reply(text="x"))
    await collect(host, request_to(server))
    addresses = set(connections.read_text(encoding="utf-8").split())
    assert addresses == {"127.0.0.1"}


PARENT = """
import asyncio, os, sys
from pathlib import Path
from agent_tui.providers.litellm.host import ProviderHost

async def main():
    host = ProviderHost(log_path=Path(sys.argv[1]), idle_timeout_s=5, environ=os.environ)
    host.start()
    while host.pid is None:
        await asyncio.sleep(0)
    print(host.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
