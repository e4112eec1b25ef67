"""The parts of the status line that the person chose, and the command that writes one."""

import json
import os
from pathlib import Path

import pytest

from agent_tui.config import STATUS_FIELDS, Settings
from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.ui.status.status_line import USUAL_ORDER
from agent_tui.ui.status.status_script import StatusScript
from tests.ui.app_support import running_app


def script(tmp_path: Path, command: str) -> StatusScript:
    async def at_once(_seconds: float) -> None:
        pass

    environ = {"PATH": os.environ["PATH"]}
    return StatusScript(command, ProcessKeeper(), environ, 5.0, tmp_path, at_once, longest_s=None)


async def test_it_reads_json_and_its_first_line_is_shown_without_what_steers(tmp_path: Path):
    line = await script(tmp_path, "cat > facts; printf '\\033[31mred\\033[0m\\tx\\nmore'").line(
        {"model": "m"}
    )
    assert line == "red x"
    assert json.loads((tmp_path / "facts").read_text()) == {"model": "m"}


async def test_it_runs_again_for_other_facts_alone(tmp_path: Path):
    status = script(tmp_path, "echo x >> runs; cat runs | wc -l | tr -d ' '")
    shown: list[str] = []
    steps: tuple[JsonObject, ...] = ({"a": 1}, {"a": 1}, {"a": 2})
    for facts in steps:
        if status.wants(facts):
            await status.follow(shown.append, pytest.fail)
    assert shown == ["1", "2"]


async def test_a_failure_is_told_and_shows_nothing(tmp_path: Path):
    status = script(tmp_path, "echo half; exit 3")
    with pytest.raises(ToolError, match="exit code 3"):
        await status.line({})
    shown: list[str] = []
    told: list[str] = []
    assert status.wants({"a": 1})
    await status.follow(shown.append, told.append)
    assert (shown, told) == ([""], ["status_command: it ended with exit code 3."])


def test_the_settings_name_the_parts_there_are():
    assert STATUS_FIELDS == USUAL_ORDER


async def test_its_line_stands_where_the_fields_say_and_a_failure_is_told_once(tmp_path: Path):
    settings = Settings(status_fields=("command", "model"))
    status = script(tmp_path, 'test -e broken && exit 1; echo "mine"')
    async with running_app(tmp_path, settings=settings, status_script=status) as ui:
        await ui.until(lambda: ui.status.command == "mine")
        await ui.drawn()
        assert str(ui.app.status.render()).startswith("mine · ")
        assert "ask" not in str(ui.app.status.render()).split()
        (tmp_path / "broken").touch()
        for mode in ("plan", "accept-edits", "ask"):
            ui.runtime.conversation.permissions.mode = mode
            ui.app.view.status.refresh()
            await ui.until(
                lambda mode=mode: (
                    not status._is_running
                    and not status.wants(ui.app.view.status._facts(ui.status))
                )
            )
        assert len([toast for toast in ui.toasts if "status_command" in toast]) == 1
        assert ui.status.command == ""
