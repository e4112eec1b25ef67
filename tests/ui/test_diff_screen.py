"""What changed in the conversation, without the feature that reviews it."""

import io
from pathlib import Path

import pytest
from textual.widgets import Static

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.feature import own_features
from agent_tui.headless.printer import print_command
from agent_tui.providers.scripted.provider import Reply, call
from agent_tui.ui.screens.diff import ChangeScreen, DiffScreen
from tests.support.models import listed_services
from tests.support.runtime import GOOD_SUMMARY, Stage
from tests.ui.app_support import Ui, listed, running_app


@pytest.fixture(autouse=True)
def _without_review(monkeypatch: pytest.MonkeyPatch) -> None:
    others = tuple(one for one in own_features() if one.name != "review")
    monkeypatch.setattr("agent_tui.feature.own_features", lambda: others)


def edit(name: str, old: str, new: str) -> Reply:
    change: dict[str, object] = {"old": old, "new": new}
    return Reply(tool_calls=(call(f"c{name}{new}", "edit", path=name, edits=[change]),))


def working(stage: Stage) -> AgentRuntime:
    (stage.workspace / "a.py").write_text("one\ntwo\nthree\n")
    (stage.workspace / "b.py").write_text("x = 1\n")
    return stage.runtime(
        [
            edit("a.py", "one", "ONE"),
            Reply("Done."),
            edit("a.py", "three", "THREE"),
            edit("b.py", "x = 1", "x = 2"),
            Reply("Done."),
            Reply(GOOD_SUMMARY),
        ],
        mode="full",
    )


def rows(ui: Ui) -> list[str]:
    return [" ".join(line.split()) for line in listed(ui.app.screen)]


def shown(ui: Ui) -> str:
    return str(ui.app.screen.query_one("#picker-preview-text", Static).render())


async def opened(ui: Ui, line: str = "/diff") -> None:
    await ui.send(line)
    await ui.until(lambda: isinstance(ui.app.screen, DiffScreen))
    await ui.until(lambda: rows(ui))
    await ui.settle()


async def test_the_diff_is_shown_by_file_by_message_and_whole(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Please shout the first.")
        await ui.send("And the last.")
        await opened(ui)
        assert rows(ui) == ["a.py +2 -2", "b.py +1 -1"]
        await ui.until(lambda: "+ ONE" in shown(ui))
        assert "+ THREE" in shown(ui)
        await ui.pilot.press("ctrl+t")
        await ui.until(lambda: len(rows(ui)) == 2 and rows(ui)[0].startswith("1."))
        assert rows(ui) == ["1. shout the first +1 -1", "2. the last +2 -2"]
        await ui.pilot.press("down")
        await ui.until(lambda: "x = 2" in shown(ui))
        assert "+ ONE" not in shown(ui)
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ChangeScreen))
        whole = ui.app.screen.query_one("#change-text", Static)
        await ui.until(lambda: "x = 2" in str(whole.render()))
        await ui.pilot.press("escape")
        assert isinstance(ui.app.screen, DiffScreen)


async def test_what_was_changed_before_a_compaction_is_there_too(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("first")
        await ui.send("second")
        await ui.send("/compact")
        await opened(ui, "/changes a.p")
        assert rows(ui) == ["a.py +2 -2"]


async def test_where_nothing_was_changed_it_says_so(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/diff")
        assert ui.notices[-1] == "No files changed in this conversation."
        await ui.send("/diff x.py")
        assert "No file changed in this conversation matches x.py" in ui.notices[-1]


async def test_a_diff_is_printed_for_scripts(tmp_path: Path):
    runtime, out = working(Stage(tmp_path)), io.StringIO()
    async for _event in runtime.submit("first"):
        pass
    services = listed_services()
    await print_command(runtime, services, "/diff", "text", out=out)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert "a.py (+1 line, -1 line)" in lines
    assert lines[-4:] == ["-one", "+ONE", "two", "three"]
