"""Model providers of other packages: loaded, refused, asked in a conversation, and their faults."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from agent_tui.cli.plugins import load_plugins
from agent_tui.commands.core.plugin_kinds import PROVIDERS
from agent_tui.config import Settings
from agent_tui.errors import ConfigError
from agent_tui.messages import UserMessage
from agent_tui.providers.access import open_models
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelInfo,
    ModelRef,
    ModelRequest,
    ProviderError,
    TextChunk,
    ToolCallChunk,
)
from agent_tui.providers.registry import ModelProvider
from agent_tui.providers.silence import OnWait, Wait, ignore_wait
from agent_tui.providers.transport import serving
from agent_tui.sessions.entries import Header, MessageEntry
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.processes.environment import model_environ
from tests.support.packages import (
    call_with_packages,
    documented_plugin,
    make_package,
    run_with_packages,
)

MORE = """
open("{marker}", "w").close()

async def fails(request):
    yield TextChunk("Half")
    raise KeyError("reply")

INFO = ModelInfo("failing/one", 32_000, 4_000)
FAILING = ModelProvider("failing", (INFO,), fails, "nowhere")
LOCAL = ModelProvider("local", (), stream, "taken")
OPENAI = ModelProvider("openai", (), stream, "taken")
GROQ = ModelProvider("groq", (), stream, "taken")

def __getattr__(name):
    if name == "OTHER":
        return ModelProvider("other", (once,), stream, "a model of another provider")
    raise AttributeError(name)
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, one of which is the example of the page and more."""
    site = tmp_path / "site"
    code = documented_plugin("ModelProvider(") + MORE.replace(
        "{marker}", str(tmp_path / "imported")
    )
    names = ("echo", "FAILING", "LOCAL", "OPENAI", "GROQ", "OTHER", "once")
    make_package(site, "echo-plugin", code, {"agent_tui.providers": {name: name for name in names}})
    monkeypatch.syspath_prepend(str(site))
    return site


@pytest.mark.usefixtures("site")
def test_a_provider_is_loaded_and_others_are_refused_with_their_reason(tmp_path: Path) -> None:
    found = load_plugins(["echo-plugin"], [tmp_path / "work"])
    assert [one.name for one in found.of(PROVIDERS)] == ["echo", "failing"]
    *taken, other, wrong = found.problems
    for name, problem in zip(("local", "openai", "groq"), taken, strict=True):
        assert f"{name} exists already" in problem
    assert "the model 'echo/once' is not named other/..." in other
    assert "once was not made by agent_tui.ModelProvider" in wrong


def test_one_where_commands_may_write_or_that_nobody_named_is_not_imported(
    site: Path, tmp_path: Path
) -> None:
    found = load_plugins(["echo-plugin"], [site.parent])
    assert found.of(PROVIDERS) == ()
    assert "where the model's commands can write" in found.problems[0]
    assert load_plugins([], []).of(PROVIDERS) == ()
    assert not (tmp_path / "imported").exists()


def test_a_script_asks_it_and_the_lists_know_it(site: Path, tmp_path: Path) -> None:
    def run(*argv: str, plugins: str = '["echo-plugin"]', settings: str = ""):
        return call_with_packages(site, tmp_path, *argv, plugins=plugins, settings=settings)

    def printed(*argv: str, settings: str = ""):
        echo = '["echo-plugin"]'
        return run_with_packages(site, tmp_path, *argv, plugins=echo, settings=settings)

    done = printed("-m", "echo/once", "-p", "hello there", "--output-format", "json")
    assert json.loads(done.stdout)["result"].strip() == "hello there", done.stderr
    chosen = printed("-p", "good morning", settings='model = "echo/once"\n')
    assert chosen.stdout.strip() == "good morning", chosen.stderr
    assert "echo/once" in run("models", "echo").stdout
    assert run("config", "set", "model", "echo/once").returncode == 0
    assert "No model named" not in run("doctor", settings='model = "echo/once"\n').stdout
    line = "agent-tui -m ech"
    tab = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    completed = run_with_packages(site, tmp_path, plugins='["echo-plugin"]', environ=tab)
    assert completed.stdout.strip() == "echo/once"
    failed = printed("-m", "failing/one", "-p", "hello")
    assert failed.returncode == 1
    assert "The provider failing failed: KeyError: 'reply'" in failed.stderr
    without = run("-m", "echo/once", "-p", "hello", plugins="[]")
    assert (without.returncode, "No model named 'echo/once'" in without.stderr) == (2, True)
    near = run("-m", "echo/onec", "-p", "hello")
    assert "echo/once" in near.stderr


def test_the_context_of_a_session_knows_its_window(site: Path, tmp_path: Path) -> None:
    header = Header(id="1111", cwd=str(tmp_path), provider="echo", model_id="once")
    with SessionStore(tmp_path / "sessions", "none").create(header) as log:
        log.append(MessageEntry(message=UserMessage(content="hi")))
        argv = ("context", str(log.path))
    known = call_with_packages(site, tmp_path, *argv, "--json", plugins='["echo-plugin"]')
    assert json.loads(known.stdout)["window"] == 32_000
    gone = call_with_packages(site, tmp_path, *argv, plugins='["gone-plugin"]')
    assert " of 32,000 tokens" not in gone.stdout
    assert "warning: No plugin gone-plugin is installed" in gone.stderr


async def reply_of(
    stream, settings: Settings | None = None, on_wait: OnWait = ignore_wait
) -> list[Chunk]:
    """What a model ``odd/one`` of a provider that answers by `stream` says."""
    info = ModelInfo("odd/one", 32_000, 4_000)
    brought = (ModelProvider("odd", (info,), stream, "here"),)
    models = open_models(settings or Settings(), dict(os.environ), brought=brought)
    ref = models.catalog.resolve("odd/one")
    assert models.catalog.info(ref) == info
    request = ModelRequest(ref, "", (UserMessage(content="hi"),), on_wait=on_wait)
    try:
        async with aclosing(models.provider.stream(request)) as chunks:
            return [chunk async for chunk in chunks]
    finally:
        await models.provider.aclose()


async def fails(request: ModelRequest) -> AsyncGenerator[Chunk, None]:
    raise ValueError("no")
    yield


async def leaves(request: ModelRequest) -> AsyncGenerator[Chunk, None]:
    yield TextChunk("a")
    raise SystemExit(3)


async def ends_early(request: ModelRequest) -> AsyncGenerator[Chunk, None]:
    yield TextChunk("a")


async def yields_text(request: ModelRequest) -> AsyncGenerator[Chunk, None]:
    yield "a"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (fails, "ValueError: no"),
        (leaves, "SystemExit: 3"),
        (ends_early, "its reply has no FinishChunk"),
        (yields_text, "TypeError: 'a' is no chunk"),
        (lambda request: 3, "AttributeError"),
    ],
)
async def test_its_fault_is_an_error_that_names_it(stream, why: str) -> None:
    with pytest.raises(ProviderError, match="The provider odd failed: ") as raised:
        await reply_of(stream)
    assert why in raised.value.message
    assert not raised.value.is_retryable


async def test_its_own_errors_keep_their_kind() -> None:
    async def is_full(request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        raise ProviderError("context_overflow", "Too long.")
        yield

    with pytest.raises(ProviderError, match="Too long") as raised:
        await reply_of(is_full)
    assert raised.value.kind == "context_overflow"


async def test_calls_come_through_and_a_stop_closes_it() -> None:
    closed: list[bool] = []

    async def calls(request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        try:
            yield ToolCallChunk(0, "c1", "read", '{"path": "a"}')
            yield FinishChunk("toolUse")
        finally:
            closed.append(True)

    assert await reply_of(calls) == [
        ToolCallChunk(0, "c1", "read", '{"path": "a"}'),
        FinishChunk("toolUse"),
    ]
    assert closed == [True]


async def test_one_that_hangs_is_closed_at_the_limit_and_its_waits_are_told(monkeypatch) -> None:
    monkeypatch.setattr(serving, "_SIGN_INTERVAL_S", 0.001)
    closed: list[bool] = []
    waits: list[Wait] = []

    async def hangs(request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        try:
            yield TextChunk("Half")
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    with pytest.raises(ProviderError, match="odd/one stopped responding") as raised:
        await reply_of(hangs, Settings(request_idle_timeout_s=0.1), waits.append)
    assert raised.value.kind == "timeout"
    assert "request_idle_timeout_s" in raised.value.hint
    assert closed == [True]
    assert waits
    count = len(waits)
    await asyncio.sleep(0.01)
    assert len(waits) == count, "no more after its end"


def test_a_model_needs_the_name_of_its_provider_and_a_window() -> None:
    for name in ("one", "odd/", "even/one", "odd"):
        with pytest.raises(ValueError, match=r"is not named odd/\.\.\."):
            ModelProvider("odd", (ModelInfo(name, 1, 1),), fails, "")
    with pytest.raises(ValueError, match="needs a window"):
        ModelProvider("odd", (ModelInfo("odd/one", 0, 1),), fails, "")


def test_its_address_is_never_guessed_and_its_key_stays_here() -> None:
    info = ModelInfo("odd/one", 32_000, 4_000)
    models = open_models(Settings(), {}, brought=(ModelProvider("odd", (info,), fails, "here"),))
    assert models.catalog.resolve("odd/one") == ModelRef("odd/one")
    with pytest.raises(ConfigError, match="No model named 'odd/two'"):
        models.catalog.resolve("odd/two")
    kept = model_environ({"ODD_API_KEY": "s3cret", "PATH": "/bin"}, own_keys=(), passed=())
    assert "ODD_API_KEY" not in kept
