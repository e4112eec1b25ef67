"""Folders that lay traps: nothing of them is obeyed, run or called before they are trusted."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from agent_tui.cli.arguments import parse_arguments
from agent_tui.cli.compose import Program, compose
from agent_tui.cli.folders import load_trust
from agent_tui.cli.main import run
from agent_tui.cli.screen_command import ScreenStart
from agent_tui.features.tour.replies import DEMO_MODEL
from agent_tui.ui.app import AgentApp
from agent_tui.ui.options import UiOptions
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.screens.modal import PageScreen
from agent_tui.ui.terminal.outcome import UiOutcome
from agent_tui.ui.transcript.blocks import NoticeBlock
from tests.support.canary_folder import TOLD, CanaryFolder
from tests.support.openai_server import Call, OpenAiServer, Reply
from tests.support.runtime import collect
from tests.ui.app_support import wait_until


@pytest.fixture
def elsewhere() -> Iterator[OpenAiServer]:
    """A server that nothing may be sent to."""
    with OpenAiServer() as running:
        yield running
    assert running.requests == []


@pytest.fixture
def canary(
    tmp_path: Path, elsewhere: OpenAiServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CanaryFolder]:
    """The folder, with everything of ours in other ones; in the end it has done nothing."""
    made = CanaryFolder(tmp_path, elsewhere.base_url)
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_TUI_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", made.search_path)
    monkeypatch.setenv("TEST_KEY", "sk-canary-0123456789")
    monkeypatch.chdir(made.path / "src")
    yield made
    assert made.fired == []
    assert not (tmp_path / "moved").exists()


def composed(*argv: str) -> Program:
    return compose(parse_arguments(argv), is_interactive=False)


@pytest.fixture
def quick_tour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.features.tour.replies.DELAY_S_PER_CHUNK", 0.0)


async def take_the_tour(program: Program) -> None:
    """A turn that reads, edits and runs a test twice, with the model that is in the program."""
    program.runtime.set_model(DEMO_MODEL)
    events = await collect(program.runtime.submit("begin"))
    assert events
    await program.runtime.aclose()
    await program.models.provider.aclose()


@pytest.mark.usefixtures("quick_tour")
async def test_a_turn_in_a_folder_that_is_not_trusted_calls_no_git_and_is_told_nothing(canary):
    program = composed("--permission-mode", "full", "--cwd", str(canary.path))
    assert TOLD not in program.runtime.conversation.prompt.system
    assert program.loaded.settings.base_url == ""
    assert program.loaded.problems == ()
    assert program.runtime.conversation.permissions.book.rules == ()
    await take_the_tour(program)
    assert "or 'world'" in (canary.path / "greet.py").read_text()
    assert canary.git_calls == []


def test_the_traps_are_real(tmp_path, elsewhere):
    """Plain git and plain Python in that folder spring them."""
    made = CanaryFolder(tmp_path, elsewhere.base_url)
    subprocess.run(["git", "status"], cwd=made.path, check=False, capture_output=True)
    subprocess.run([sys.executable, "-c", "import json"], cwd=made.path, check=True)
    assert {"fsmonitor", "json"} <= set(made.fired)


@pytest.mark.usefixtures("quick_tour")
@pytest.mark.parametrize("has_commondir", [False, True])
async def test_in_a_folder_that_is_trusted_git_is_called_and_still_runs_nothing_of_it(
    canary, has_commondir
):
    canary.use_real_git()
    if has_commondir:
        canary.point_elsewhere()
    load_trust().decide(canary.path, "trusted")
    program = composed("--permission-mode", "full", "--cwd", str(canary.path))
    assert TOLD in program.runtime.conversation.prompt.system
    refused = {problem.key for problem in program.loaded.problems}
    assert refused == {
        "base_url",
        "api_key_env",
        "permission_mode",
        "session_dir",
        "permissions.allow",
    }
    assert [str(rule) for rule in program.runtime.conversation.permissions.book.rules] == [
        "bash(make deploy)"
    ]
    await take_the_tour(program)
    assert canary.git_calls


def test_a_folder_that_was_refused_stays_silent(canary):
    load_trust().decide(canary.path, "not trusted")
    runtime = composed().runtime
    assert TOLD not in runtime.conversation.prompt.system
    withheld = {file.path.name for file in runtime.conversation.withheld_files}
    assert withheld >= {"AGENTS.md", "config.toml", "commands"}


def test_a_flag_trusts_for_one_run(canary):
    runtime = composed("--trust").runtime
    assert TOLD in runtime.conversation.prompt.system
    assert runtime.conversation.withheld_files == ()
    assert load_trust().list_decisions() == {}


def printed(canary: CanaryFolder, server: OpenAiServer, *argv: str) -> tuple[str, str]:
    """Standard output and error of a printed turn; the request it sent is in `server`."""
    server.play(
        Reply(tool_calls=(Call("bash", {"command": "ls"}),)),
        Reply(text="All done."),
    )
    line = [sys.executable, "-P", "-m", "agent_tui", "-m", "test-model"]
    line += ["--base-url", server.base_url, "--api-key-env", "TEST_KEY", "-p", "go", *argv]
    done = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout, done.stderr


@pytest.mark.thorough
def test_without_a_terminal_the_folder_is_not_obeyed_and_one_line_says_so(canary):
    with OpenAiServer() as server:
        out, err = printed(canary, server)
        assert "All done." in out
        assert len(server.chats) == 2
        assert TOLD not in json.dumps([request.body for request in server.chats])
    (line,) = [line for line in err.splitlines() if "Not read:" in line]
    assert "AGENTS.md" in line
    assert "agent-tui trust add" in line
    assert "--trust" in line
    assert canary.git_calls == []


@pytest.mark.slow
def test_without_a_terminal_a_flag_trusts_for_one_run(canary):
    canary.use_real_git()
    with OpenAiServer() as server:
        out, err = printed(canary, server, "--trust")
        assert "All done." in out
        assert TOLD in json.dumps(server.chats[0].body)
    assert "Not read:" not in err
    assert "base_url" in err
    assert load_trust().list_decisions() == {}


@asynccontextmanager
async def opened(*argv: str) -> AsyncGenerator[tuple[AgentApp, Pilot[UiOutcome]]]:
    """The screen as ``agent-tui`` opens it, with no provider warmed up."""
    start = ScreenStart(parse_arguments(argv))

    async def nothing() -> None:
        pass

    def load() -> UiOptions:
        return replace(start.load(), warm=nothing, first_run=None)

    app = AgentApp(load, before_loading=start.ask_first)
    async with app.run_test(size=(100, 40)) as pilot:
        yield app, pilot


async def until(pilot: Pilot[UiOutcome], is_so) -> None:
    await wait_until(pilot, is_so, lambda: "it did not come to that")


def trust_screen(app: AgentApp) -> ChoiceScreen[object] | None:
    """The question about the folder, if it is in front; that about its servers is another."""
    screen = app.screen
    if isinstance(screen, ChoiceScreen) and screen.question.title == "Trust this folder?":
        return screen
    return None


async def asked(app: AgentApp, pilot: Pilot[UiOutcome]) -> ChoiceScreen[object]:
    """The question, ready to be answered at once."""
    await until(pilot, lambda: trust_screen(app) is not None)
    screen = trust_screen(app)
    assert screen is not None
    screen._quiet_s = 0.0
    return screen


@pytest.mark.parametrize(
    ("key", "is_told", "kept"),
    [
        ("y", True, "trusted"),
        ("o", True, "not asked"),
        ("n", False, "not trusted"),
        ("escape", False, "not asked"),
    ],
)
async def test_the_screen_asks_before_anything_is_loaded(canary, key, is_told, kept):
    async with opened() as (app, pilot):
        await asked(app, pilot)
        assert app.loaded is None
        await pilot.press(key)
        await until(pilot, lambda: app.loaded is not None)
        prompt = app.runtime.conversation.prompt.system
        assert (TOLD in prompt) == is_told
        assert bool(app.runtime.conversation.withheld_files) != is_told
        assert load_trust().state_of(canary.path) == kept
    assert canary.git_calls == []


async def test_letters_typed_before_the_pause_go_to_the_prompt_and_answer_nothing(canary):
    async with opened() as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        assert isinstance(app.screen, ChoiceScreen)
        app.screen._quiet_s = 60.0  # however slowly the keys come
        await pilot.press("y", "e", "s", "space", "n", "o")
        assert isinstance(app.screen, ChoiceScreen)
        assert app.prompt.area.text == "yes no"
        await pilot.press("enter")
        assert isinstance(app.screen, ChoiceScreen)
    assert load_trust().list_decisions() == {}


async def test_trust_can_be_given_and_taken_back_while_the_screen_is_open(canary):
    async with opened() as (app, pilot):
        await asked(app, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: app.loaded is not None)
        runtime = app.runtime
        assert TOLD not in runtime.conversation.prompt.system
        before = runtime.conversation.usage.used
        runtime.conversation.permissions.book.add_session_rule("bash(make all)")
        app.controller.dispatch("/trust")
        await asked(app, pilot)
        await pilot.press("y")
        await until(pilot, lambda: TOLD in runtime.conversation.prompt.system)
        await until(pilot, lambda: runtime.conversation.usage.used > before)
        await until(pilot, lambda: "the next time agent-tui starts there" in notices(app))
        assert [file.path.name for file in runtime.conversation.context_files] == [
            "AGENTS.md",
            "AGENTS.md",
        ]
        rules = [str(rule) for rule in runtime.conversation.permissions.book.rules]
        assert rules == ["bash(make deploy)", "bash(make all)"]
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))  # about its servers
        await pilot.press("n")
        app.controller.dispatch("/trust")
        await asked(app, pilot)
        await pilot.press("n")
        await until(pilot, lambda: TOLD not in runtime.conversation.prompt.system)
        app.controller.dispatch("/memory")
        await until(pilot, lambda: isinstance(app.screen, PageScreen))
        await until(pilot, lambda: "the folder is not trusted" in shown_rows(app))


async def test_commands_of_the_folder_are_there_only_while_it_is_trusted(canary):
    async with opened() as (app, pilot):
        await asked(app, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: app.loaded is not None)
        registry, look = app.controller.registry, app.controller.refresh_commands
        await look()
        assert registry.find("ship") is None
        trust = app.runtime.services.trust
        trust.trust_for_this_run(canary.path)
        await look()
        assert registry.find("ship") is not None
        assert "init.md is ignored: /init is a built-in command" in notices(app)
        trust.decide(canary.path, "not trusted")
        app.controller.dispatch("/ship")
        await until(pilot, lambda: "/ship no longer exists" in notices(app))
        await look()
        assert registry.find("ship") is None


async def test_a_folder_without_any_such_file_is_not_asked_about(canary, tmp_path, monkeypatch):
    plain = tmp_path / "plain"
    (plain / ".git").mkdir(parents=True)
    monkeypatch.chdir(plain)
    async with opened() as (app, pilot):
        await until(pilot, lambda: app.loaded is not None)
        assert not isinstance(app.screen, ChoiceScreen)
        assert app.runtime.conversation.withheld_files == ()


async def test_a_session_of_another_folder_asks_about_that_one(canary, tmp_path, monkeypatch):
    program = composed("--cwd", str(canary.path))
    program.runtime.sessions.rename("from there")
    session = program.runtime.conversation.log.header.id
    await program.runtime.aclose()
    plain = tmp_path / "plain"
    plain.mkdir()
    monkeypatch.chdir(plain)
    async with opened() as (app, pilot):
        await until(pilot, lambda: app.loaded is not None)
        app.controller.dispatch(f"/resume {session}")
        await asked(app, pilot)
        assert app.runtime.conversation.cwd == canary.path
        assert TOLD not in app.runtime.conversation.prompt.system
        await pilot.press("y")
        await until(pilot, lambda: TOLD in app.runtime.conversation.prompt.system)


async def test_the_screen_says_so_when_the_file_of_decisions_is_broken(canary, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "trust.json").write_text("{")
    async with opened() as (app, pilot):
        await asked(app, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: app.loaded is not None)
        await until(pilot, lambda: "trust.json" in notices(app))


def shown_rows(app: AgentApp) -> list[str]:
    return [str(row.render()) for row in app.screen.query(".page-right").results(Static)]


def notices(app: AgentApp) -> str:
    blocks = app.view.widgets.transcript.blocks
    return "\n".join(block.text for block in blocks if isinstance(block, NoticeBlock))


def test_the_command_trusts_lists_and_takes_back(canary, capsys):
    assert run(["trust", "list"]) == 0
    assert "No decisions" in capsys.readouterr().out
    assert run(["trust", "add"]) == 0
    assert capsys.readouterr().out == f"{canary.path}: trusted\n"
    assert run(["trust", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed == [{"folder": str(canary.path), "state": "trusted"}]
    assert run(["trust", "remove", str(canary.path / "src")]) == 1
    assert f"because of {canary.path}" in capsys.readouterr().err
    assert run(["trust", "remove", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "not asked"
    assert run(["trust", "remove"]) == 1
    assert "No decision" in capsys.readouterr().err


def test_the_command_refuses_the_home_folder(canary, capsys):
    assert run(["trust", "add", os.environ["HOME"]]) == 1
    assert "too broad" in capsys.readouterr().err
    assert run(["trust", "add", "/nowhere/at/all"]) == 2
