"""Hooks on the screen: the question, the page, the command."""

import json
from pathlib import Path

import pytest
from textual.widgets import Static

from agent_tui.agent.hook import HookSpec
from agent_tui.commands.trust import program_question
from agent_tui.config import HookSettings
from agent_tui.features.hooks.part import hook_question
from agent_tui.features.tour.scripted import Reply
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.screens.modal import PageScreen
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, asking, running_app


def of_project(stage: Stage, command: str) -> None:
    """Name a hook that the person was not asked about."""
    file = stage.workspace / ".claude" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": command}]}]}
    file.write_text(json.dumps({"hooks": hooks}))


def rows(ui: Ui) -> str:
    return "\n".join(str(row.render()) for row in ui.app.screen.query(Static))


async def asked(ui: Ui) -> None:
    """Wait for the question, ready to be answered at once."""
    await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
    screen = ui.app.screen
    assert isinstance(screen, ChoiceScreen)
    screen._quiet_s = 0.0


async def never(*, is_allowed: bool) -> None:
    raise AssertionError(is_allowed)


def test_the_question_tells_the_whole_command():
    spec = HookSpec(
        "PreToolUse", "check \x1b[2J; rm x", "Edit|Write", source="/p/.claude/settings.json"
    )
    question = program_question(hook_question(spec, never))
    assert question.title == "Run this project's hook on PreToolUse (Edit|Write)?"
    assert "; rm x" in question.facts[0]
    assert "\x1b" not in question.facts[0]


async def test_a_projects_hook_is_run_only_after_a_yes(tmp_path: Path):
    stage = Stage(tmp_path)
    of_project(stage, "touch ran; echo it is noon")
    async with running_app(tmp_path, Reply(text="Hello."), stage=stage) as ui:
        await asked(ui)
        assert "touch ran; echo it is noon" in rows(ui)
        await ui.pilot.press("escape")
        await ui.send("hello")
        assert not (stage.workspace / "ran").exists()
        assert any("with /hooks ask" in notice for notice in ui.notices)
        await ui.send("/hooks ask")
        await asked(ui)
        await ui.pilot.press("y")
        await ui.send("hello again")
        assert (stage.workspace / "ran").exists()


async def test_the_page_shows_hooks_and_what_came_of_them(tmp_path: Path):
    stage = Stage(tmp_path)
    own = {
        "UserPromptSubmit": (HookSettings(command="echo it is noon"),),
        "Stop": (HookSettings(command="exit 3"), HookSettings(command="a", matcher="(")),
    }
    runtime = asking(stage, Reply(text="Hello."), hooks=own)
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(110, 50)) as ui:
        await ui.send("hello")
        await ui.send("/hooks")
        assert isinstance(ui.app.screen, PageScreen)
        shown = rows(ui)
        for part in (
            "UserPromptSubmit",
            "echo it is noon",
            "added text",
            "exit code 3",
            "not a valid regular",
        ):
            assert part in shown
        await ui.pilot.press("escape")
        await ui.send("/hooks jump")
        assert ui.notices[-1] == "/hooks takes ask, not jump."


@pytest.mark.thorough
async def test_the_page_says_how_to_have_a_hook(tmp_path: Path):
    async with running_app(tmp_path, size=(110, 40)) as ui:
        await ui.send("/hooks")
        assert ".agent-tui/hooks.json" in rows(ui)
        await ui.pilot.press("escape")
        await ui.send("/hooks ask")
        assert ui.notices[-1] == "This project has no hooks, or is not trusted (see /trust)."
