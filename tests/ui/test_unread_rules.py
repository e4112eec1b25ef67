"""A start of the screen when deny rules cannot be read."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from agent_tui.cli.arguments import parse_arguments
from agent_tui.cli.screen_command import ScreenStart
from agent_tui.commands.unread_rules import unread_question
from agent_tui.errors import UsageError
from agent_tui.permissions.rule_book import UnreadRules
from agent_tui.ui.app import AgentApp
from agent_tui.ui.options import UiOptions
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.terminal.outcome import UiOutcome
from agent_tui.ui.transcript.blocks import NoticeBlock
from tests.ui.app_support import running_app, wait_until

_GOOD = '[permissions]\ndeny = ["bash(rm *)"]\n'
_MISTAKE = '[permissions]\ndeny = ["rm *"]\n'


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings, with a mistake in a deny rule."""
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_TUI_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    config = tmp_path / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text(_MISTAKE)
    return config


@asynccontextmanager
async def opened(*argv: str) -> AsyncGenerator[tuple[AgentApp, Pilot[UiOutcome]]]:
    """The screen as ``agent-tui -m scripted/tour`` opens it in mode full."""
    given = ("-m", "scripted/tour", "--permission-mode", "full", "--trust", *argv)
    start = ScreenStart(parse_arguments(given))

    async def nothing() -> None:
        pass

    def load() -> UiOptions:
        return replace(start.load(), warm=nothing, first_run=None)

    app = AgentApp(load, before_loading=start.ask_first)
    async with app.run_test(size=(100, 40)) as pilot:
        yield app, pilot


async def _until(pilot: Pilot[UiOutcome], is_so) -> None:
    await wait_until(pilot, is_so, lambda: "it did not come to that")


async def _answer(app: AgentApp, pilot: Pilot[UiOutcome], key: str) -> ChoiceScreen[object]:
    """Answer the question once it is there."""
    await _until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
    screen = app.screen
    assert isinstance(screen, ChoiceScreen)
    assert screen.question.title == "Some of your deny rules cannot be read"
    screen._quiet_s = 0.0
    await pilot.press(key)
    return screen


def _notices(app: AgentApp) -> str:
    blocks = app.view.widgets.transcript.blocks
    return "\n".join(block.text for block in blocks if isinstance(block, NoticeBlock))


async def test_continuing_means_mode_ask_and_is_shown(config: Path):
    async with opened() as (app, pilot):
        await _answer(app, pilot, "c")
        await _until(pilot, lambda: app.loaded is not None)
        await _until(pilot, lambda: "Mode ask for this session" in _notices(app))
        runtime = app.controller.runtime
        assert runtime.conversation.permissions.mode == "ask"
        assert "Permission rule ignored: settings: deny: 'rm *'" in _notices(app)
    assert config.read_text() == _MISTAKE


async def test_a_file_that_was_corrected_in_the_editor_counts(
    config: Path, monkeypatch: pytest.MonkeyPatch
):
    edited: list[Path] = []

    def edit(_app: object, file: Path) -> bool:
        edited.append(file)
        file.write_text(_GOOD)
        return True

    monkeypatch.setattr("agent_tui.ui.window.edit_file", edit)
    async with opened() as (app, pilot):
        await _answer(app, pilot, "o")
        await _until(pilot, lambda: app.loaded is not None)
        permissions = app.controller.runtime.conversation.permissions
        assert permissions.mode == "full"
        assert [str(rule) for rule in permissions.book.rules] == ["bash(rm *)"]
        assert "Mode ask" not in _notices(app)
    assert edited == [config]


async def test_a_file_that_is_still_wrong_is_asked_about_again(
    config: Path, monkeypatch: pytest.MonkeyPatch
):
    def edit(_app: object, file: Path) -> bool:
        file.write_text("[permissions\n")
        return True

    monkeypatch.setattr("agent_tui.ui.window.edit_file", edit)
    async with opened() as (app, pilot):
        first = await _answer(app, pilot, "o")
        assert "is not a rule" in "".join(first.question.facts)
        await _until(
            pilot, lambda: app.screen is not first and isinstance(app.screen, ChoiceScreen)
        )
        second = await _answer(app, pilot, "c")
        assert f"{config}:1: not valid TOML" in "".join(second.question.facts)
        await _until(pilot, lambda: app.loaded is not None)


@pytest.mark.parametrize("key", ["l", "escape"])
async def test_leaving_ends_with_what_is_wrong(config: Path, key: str):
    async with opened() as (app, pilot):
        await _answer(app, pilot, key)
        await _until(pilot, lambda: app.return_value is not None)
    outcome = app.return_value
    assert outcome is not None
    assert isinstance(outcome.error, UsageError)
    assert f"{config}:2: permissions.deny" in str(outcome.error)


async def test_nothing_is_asked_if_the_rules_can_be_read(config: Path):
    config.write_text(_GOOD)
    async with opened() as (app, pilot):
        await _until(pilot, lambda: app.loaded is not None)
        assert not isinstance(app.screen, ChoiceScreen)
        assert app.controller.runtime.conversation.permissions.mode == "full"


def _asked(*files: Path | None) -> Sequence[str]:
    unread = [UnreadRules("x", "wrong", file) for file in files]
    return [choice.key for choice in unread_question(unread).choices]


def test_a_file_is_offered_only_if_there_is_one():
    assert _asked(None) == ["l", "c"]
    assert _asked(None, Path("x")) == ["o", "l", "c"]


@pytest.mark.parametrize("size", [(80, 24), (100, 30)])
async def test_the_answers_are_in_sight_however_much_is_wrong(tmp_path: Path, size):
    wrong = f"/{'d' * 200}/config.toml:1: not valid TOML: {'x' * 300}\x1b[2J"
    question = unread_question([UnreadRules("x", wrong, tmp_path)] * 9)
    assert question.facts[3] == "… and 6 more"
    assert "\x1b" not in "".join(question.facts)
    async with running_app(tmp_path, size=size) as ui:
        ui.app.push_screen(ChoiceScreen(question))
        await ui.settle()
        for part in ("#answers", "#page-keys"):
            region = ui.app.screen.query_one(part).region
            assert region.height > 0
            assert region.bottom <= size[1]
