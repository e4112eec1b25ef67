"""Deaths of a local model's server, of the program, and what is left of them: nothing."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from agent_tui.features.local.provider import LocalProvider
from agent_tui.providers.base import ProviderError
from agent_tui.providers.host import ProviderHost
from tests.features.local.rig import FakeModel, ask, is_gone, is_refused, local_provider, until
from tests.providers.requests import collect, failing, text_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

REPOSITORY = Path(__file__).parents[3]
PARENT = """
import asyncio, sys
from pathlib import Path
from tests.features.local.rig import FakeModel, local_provider

async def main():
    folder, load = Path(sys.argv[1]), sys.argv[2]
    provider = local_provider(None, folder / "log", FakeModel(folder, "small", load))
    served = await provider.start_server("small")
    print(served.url, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture
def model(tmp_path: Path) -> FakeModel:
    """A model that loads."""
    return FakeModel(tmp_path, "small")


@pytest_asyncio.fixture(loop_scope="session")
async def local(
    host: ProviderHost, tmp_path: Path, model: FakeModel
) -> AsyncIterator[LocalProvider]:
    """Its provider."""
    provider = local_provider(host, tmp_path / "log", model)
    yield provider
    await provider.aclose()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_server_killed_while_idle_is_replaced_without_a_word(
    local: LocalProvider, model: FakeModel, number: signal.Signals
) -> None:
    await local.start_server("small")
    os.kill(model.pids[0], number)
    assert text_of(await collect(local, ask("small"))) == "small says hello"
    assert len(model.starts) == 2


async def test_a_server_killed_before_the_first_chunk_is_replaced_once(
    local: LocalProvider, model: FakeModel, tmp_path: Path
) -> None:
    request = asyncio.create_task(failing(local, ask("small", "silent")))
    for number in (1, 2):
        await until(lambda number=number: len(model.requests) == number)
        os.kill(model.pids[-1], signal.SIGKILL)
    received, error = await request
    assert (received, error.kind) == ([], "crashed")
    assert len(model.starts) == 2
    assert "the server of local/small exited" in (tmp_path / "log").read_text(encoding="utf-8")


async def test_a_server_killed_in_mid_stream_is_a_crash_and_the_next_request_works(
    local: LocalProvider, model: FakeModel
) -> None:
    stream = local.stream(ask("small", "hold"))
    async with aclosing(stream):
        await anext(stream)
        os.kill(model.pids[0], signal.SIGKILL)
        with pytest.raises(ProviderError, match="exited mid-reply") as raised:
            async for _ in stream:
                pass
    assert raised.value.kind == "crashed"
    assert len(model.starts) == 1
    assert text_of(await collect(local, ask("small"))) == "small says hello"
    assert len(model.starts) == 2


async def test_a_server_killed_while_it_loads_is_started_once_more(
    host: ProviderHost, tmp_path: Path
) -> None:
    slow = FakeModel(tmp_path, "slow", "hold", "ready")
    provider = local_provider(host, tmp_path / "log", slow)
    request = asyncio.create_task(collect(provider, ask("slow")))
    await until(lambda: len(slow.starts) == 1)
    os.kill(slow.pids[0], signal.SIGKILL)
    assert text_of(await request) == "slow says hello"
    await provider.aclose()


async def test_a_server_killed_twice_while_it_loads_is_given_up(
    host: ProviderHost, tmp_path: Path
) -> None:
    slow = FakeModel(tmp_path, "slow", "hold")
    provider = local_provider(host, tmp_path / "log", slow)
    request = asyncio.create_task(failing(provider, ask("slow")))
    for number in (1, 2):
        await until(lambda number=number: len(slow.starts) == number)
        os.kill(slow.pids[-1], signal.SIGKILL)
    _, error = await request
    assert "local/slow was killed twice while loading" in str(error)
    assert not error.is_retryable
    assert len(slow.starts) == 2
    await provider.aclose()


async def test_a_cancelled_request_leaves_the_load_to_the_next_one(
    host: ProviderHost, tmp_path: Path
) -> None:
    slow = FakeModel(tmp_path, "slow", "hold", "ready")
    provider = local_provider(host, tmp_path / "log", slow)
    request = asyncio.create_task(collect(provider, ask("slow")))
    await until(lambda: len(slow.starts) == 1)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert not is_gone(slow.pids[0])
    waiting = asyncio.create_task(collect(provider, ask("slow")))
    os.kill(slow.pids[0], signal.SIGKILL)
    assert text_of(await waiting) == "slow says hello"
    assert len(slow.starts) == 2
    await provider.aclose()


async def test_closing_during_a_load_leaves_no_process(host: ProviderHost, tmp_path: Path) -> None:
    slow = FakeModel(tmp_path, "slow", "hold")
    provider = local_provider(host, tmp_path / "log", slow)
    request = asyncio.create_task(provider.start_server("slow"))
    await until(lambda: len(slow.starts) == 1)
    await provider.aclose()
    assert is_gone(slow.pids[0])
    assert len(slow.starts) == 1
    with pytest.raises(asyncio.CancelledError):
        await request


async def test_closing_leaves_no_process_and_no_port(
    local: LocalProvider, model: FakeModel
) -> None:
    url = (await local.start_server("small")).url
    assert not is_refused(url)
    await local.aclose()
    assert is_gone(model.pids[0])
    assert is_refused(url)


async def test_closing_during_a_request_starts_nothing_again(
    local: LocalProvider, model: FakeModel
) -> None:
    request = asyncio.create_task(failing(local, ask("small", "silent")))
    await until(lambda: len(model.requests) == 1)
    await local.aclose()
    _, error = await request
    assert error.kind == "crashed"
    assert len(model.starts) == 1
    assert is_gone(model.pids[0])


async def test_a_server_whose_program_was_killed_ends_and_frees_its_port(
    tmp_path: Path, model: FakeModel
) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(tmp_path), "ready", cwd=REPOSITORY, stdout=PIPE
    )
    assert parent.stdout is not None
    url = (await parent.stdout.readline()).decode().strip()
    assert not is_refused(url)
    parent.kill()
    await parent.wait()
    await until(lambda: is_gone(model.pids[0]) and is_refused(url))


async def test_a_server_whose_program_was_killed_during_the_load_ends(
    tmp_path: Path, model: FakeModel
) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(tmp_path), "hold", cwd=REPOSITORY
    )
    await until(lambda: len(model.starts) == 1)
    parent.kill()
    await parent.wait()
    await until(lambda: is_gone(model.pids[0]))


async def test_the_terminal_does_not_reach_a_server(local: LocalProvider, model: FakeModel) -> None:
    await local.start_server("small")
    assert os.getsid(model.pids[0]) == model.pids[0] != os.getsid(0)
