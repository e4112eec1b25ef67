"""Models on this machine: started when needed, one at a time, and what goes wrong with them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import NoReturn

import pytest
import pytest_asyncio

from agent_tui.features.local.model import DEFAULT_WINDOW
from agent_tui.features.local.provider import KEY_VARIABLE, LocalProvider
from agent_tui.features.local.server_messages import ServedLocal
from agent_tui.features.local.settings import LocalSettings
from agent_tui.installation import install_command
from agent_tui.messages import UserMessage
from agent_tui.providers.base import ModelRef, ModelRequest, ProviderError
from agent_tui.providers.host import ProviderHost
from tests.features.local.rig import (
    FakeModel,
    ask,
    is_gone,
    is_refused,
    local_provider,
    until,
)
from tests.providers.requests import collect, failing, text_of
from tests.support.fake_llama_server import WINDOW
from tests.support.gguf_files import gguf_bytes
from tests.support.provider_process import LOCAL_KEY

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def model(tmp_path: Path) -> FakeModel:
    """A model that loads."""
    return FakeModel(tmp_path, "small")


@pytest.fixture
def other(tmp_path: Path) -> FakeModel:
    """Another one."""
    return FakeModel(tmp_path, "other")


@pytest_asyncio.fixture(loop_scope="session")
async def local(
    host: ProviderHost, tmp_path: Path, model: FakeModel, other: FakeModel
) -> AsyncIterator[LocalProvider]:
    """A provider of both."""
    provider = local_provider(host, tmp_path / "log", model, other)
    yield provider
    await provider.aclose()


async def test_nothing_runs_until_a_model_is_asked(local: LocalProvider, model: FakeModel) -> None:
    await local.warm(ModelRef("local/x"))
    assert model.starts == []
    assert text_of(await collect(local, ask("small"))) == "small says hello"
    assert model.pids == list(local.servers.pids)


async def test_two_requests_at_once_share_one_server(
    local: LocalProvider, model: FakeModel
) -> None:
    replies = await asyncio.gather(collect(local, ask("small")), collect(local, ask("small")))
    assert [text_of(reply) for reply in replies] == ["small says hello"] * 2
    assert len(model.starts) == 1


async def test_what_the_server_says_of_itself_is_told(
    local: LocalProvider,
) -> None:
    served = await local.start_server("small")
    assert (served.window, served.trained_window, served.knows_tools) == (WINDOW, 8_192, False)


@pytest.mark.parametrize(
    ("settings", "context"),
    [
        (LocalSettings(), 8_192),
        (LocalSettings(context=2_048), 2_048),
        (LocalSettings(context=100_000), 8_192),
    ],
)
async def test_the_window_asked_for_is_never_larger_than_the_trained_one(
    host: ProviderHost, tmp_path: Path, model: FakeModel, settings: LocalSettings, context: int
) -> None:
    provider = local_provider(host, tmp_path / "log", model, settings=settings)
    await provider.start_server("small")
    await provider.aclose()
    assert DEFAULT_WINDOW > 8_192
    assert model.starts[0]["order"]["context"] == context


async def test_threads_and_gpu_layers_come_from_the_settings(
    host: ProviderHost, tmp_path: Path, model: FakeModel
) -> None:
    settings = LocalSettings(threads=3, gpu_layers=7)
    provider = local_provider(host, tmp_path / "log", model, settings=settings)
    await provider.start_server("small")
    await provider.aclose()
    order = model.starts[0]["order"]
    assert (order["threads"], order["gpu_layers"], order["alias"]) == (3, 7, "small")


async def test_no_key_is_in_the_environment_of_a_server(
    host: ProviderHost, tmp_path: Path, model: FakeModel
) -> None:
    environ = {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "OPENAI_API_KEY": "sk-secret-1",
        "MY_OWN_API_KEY": "secret-2",
        KEY_VARIABLE: LOCAL_KEY,
    }
    provider = local_provider(host, tmp_path / "log", model, environ=environ)
    await provider.start_server("small")
    await provider.aclose()
    seen = model.starts[0]["environ"]
    assert seen["LANG"] == "C.UTF-8"
    assert seen["GGML_NO_BACKTRACE"] == "1"
    assert not {"sk-secret-1", "secret-2", LOCAL_KEY} & set(seen.values())


async def test_a_request_without_the_right_key_is_refused(
    host: ProviderHost, tmp_path: Path, model: FakeModel
) -> None:
    provider = local_provider(host, tmp_path / "log", model, key="another-key")
    _, error = await failing(provider, ask("small"))
    await provider.aclose()
    assert error.kind == "auth"


async def test_a_model_nobody_knows_is_named_with_the_way_to_get_one(local: LocalProvider) -> None:
    _, error = await failing(local, ask("big"))
    assert error.kind == "not_found"
    assert "No local model named big." in str(error)
    assert "agent-tui models list" in str(error)


async def test_a_model_whose_file_is_gone_names_the_file(
    local: LocalProvider, model: FakeModel
) -> None:
    model.model.path.unlink()
    _, error = await failing(local, ask("small"))
    assert error.kind == "not_found"
    assert str(model.model.path) in str(error)


async def test_another_model_takes_the_place_of_an_idle_one(
    local: LocalProvider, model: FakeModel, other: FakeModel
) -> None:
    url = (await local.start_server("small")).url
    assert text_of(await collect(local, ask("other"))) == "other says hello"
    await until(lambda: is_gone(model.pids[0]) and is_refused(url))
    assert list(local.servers.pids) == other.pids


async def test_a_busy_server_ends_its_reply_before_it_gives_way(
    local: LocalProvider, model: FakeModel, other: FakeModel
) -> None:
    stream = local.stream(ask("small", "hold"))
    async with aclosing(stream):
        await anext(stream)
        assert text_of(await collect(local, ask("other"))) == "other says hello"
        assert not is_gone(model.pids[0])
    await until(lambda: is_gone(model.pids[0]))
    assert list(local.servers.pids) == other.pids


async def test_closing_a_stream_ends_the_request_at_the_server(
    local: LocalProvider, model: FakeModel
) -> None:
    stream = local.stream(ask("small", "hold"))
    async with aclosing(stream):
        await anext(stream)
    await until(lambda: {"left": "hold"} in model.requests)


async def test_a_prompt_read_ahead_asks_for_one_token_and_gives_nothing(
    local: LocalProvider, model: FakeModel
) -> None:
    await local.prefill(ModelRequest(ask("small").model, "Be brief.", ()))
    assert [request["max_tokens"] for request in model.requests] == [1]


async def test_reading_ahead_gives_way_to_a_request_that_begins_otherwise(
    local: LocalProvider, model: FakeModel
) -> None:
    reading = asyncio.create_task(local.prefill(ask("small", "silent", system="Be long.")))
    await until(lambda: len(model.requests) == 1)
    assert text_of(await collect(local, ask("small"))) == "small says hello"
    await reading
    await until(lambda: {"left": "silent"} in model.requests)


async def test_reading_ahead_goes_on_when_the_request_needs_what_is_read(
    local: LocalProvider, model: FakeModel
) -> None:
    ahead = ask("small", "silent")
    reading = asyncio.create_task(local.prefill(ahead))
    await until(lambda: len(model.requests) == 1)
    messages = (*ahead.messages, UserMessage(content="hello"))
    await collect(local, ModelRequest(ahead.model, ahead.system, messages))
    assert not reading.done()
    assert {"left": "silent"} not in model.requests


async def test_reading_ahead_of_a_model_that_does_not_load_says_nothing(
    host: ProviderHost, tmp_path: Path
) -> None:
    broken = FakeModel(tmp_path, "broken", "refused")
    provider = local_provider(host, tmp_path / "log", broken)
    await provider.prefill(ask("broken"))
    assert len(broken.starts) == 1
    await provider.aclose()


@pytest.mark.parametrize(
    ("load", "kind", "words", "starts"),
    [
        ("refused", "bad_request", ("tensor 'x' is not there", "bad.gguf", "pull or add"), 1),
        ("starved", "bad_request", ("Not enough memory", "smaller context"), 1),
        ("missing", "not_found", (install_command("local"),), 1),
        ("abort", "bad_request", ("GGML_ASSERT(n_layer > 0) failed", "bad.gguf"), 1),
        ("mute", "bad_request", ("status 3", "log"), 1),
        ("babble", "bad_request", ("an invalid answer",), 1),
    ],
)
async def test_a_model_that_does_not_load_says_why(
    host: ProviderHost, tmp_path: Path, load: str, kind: str, words: tuple[str, ...], starts: int
) -> None:
    bad = FakeModel(tmp_path, "bad", load)
    provider = local_provider(host, tmp_path / "log", bad)
    _, error = await failing(provider, ask("bad"))
    assert error.kind == kind
    assert not error.is_retryable
    assert [word for word in ("local/bad", *words) if word not in str(error)] == []
    assert len(bad.starts) == starts
    assert all(is_gone(pid) for pid in bad.pids)
    await provider.aclose()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"<html>", "is not a GGUF file"), (gguf_bytes()[:-9], "is incomplete"), (b"", "is empty")],
)
async def test_a_file_that_was_damaged_since_is_told_in_our_words(
    host: ProviderHost, tmp_path: Path, content: bytes, words: str
) -> None:
    bad = FakeModel(tmp_path, "bad", "refused")
    bad.model.path.write_bytes(content)
    provider = local_provider(host, tmp_path / "log", bad)
    _, error = await failing(provider, ask("bad"))
    assert error.message.startswith("Cannot load local/bad: ")
    assert words in error.message
    assert error.hint == "Restore the file, or remove the model: agent-tui models remove bad"
    await provider.aclose()


async def test_a_server_that_cannot_be_started_is_an_error_of_the_model(
    host: ProviderHost, tmp_path: Path, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_process(*_words: object, **_more: object) -> NoReturn:
        raise OSError("no more processes")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", no_process)
    provider = local_provider(host, tmp_path / "log", model)
    with pytest.raises(ProviderError, match="Cannot start the server of local/small"):
        await provider.start_server("small")
    await provider.aclose()


async def test_a_failed_load_is_tried_again_with_the_next_request(
    host: ProviderHost, tmp_path: Path
) -> None:
    mended = FakeModel(tmp_path, "mended", "refused", "ready")
    provider = local_provider(host, tmp_path / "log", mended)
    await failing(provider, ask("mended"))
    served = await provider.start_server("mended")
    assert isinstance(served, ServedLocal)
    await provider.aclose()
