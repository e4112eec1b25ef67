"""A plan on the screen: read, changed, approved."""

from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.ui.transcript.blocks import ToolBlock
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, running_app

PLAN = "# Shout\n\nIt is **quiet** now.\n\n1. Change greet\n2. Run the tests"


def planning(stage: Stage) -> AgentRuntime:
    handed_over = Reply("I have looked.", tool_calls=(call("p1", "plan", plan=PLAN),))
    return stage.runtime([handed_over, Reply("Done.")], mode="plan")


def offered(ui: Ui) -> list[str]:
    lines = ui.approval.query(".answer")
    return [str(line.render()).strip("› ") for line in lines if line.display]


async def asked(ui: Ui) -> None:
    await ui.send("make it shout")
    assert ui.approval.display
    ui.approval.arm()
    await ui.settle()


async def test_a_plan_is_read_as_markdown_and_approved_with_edits_accepted(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(
        tmp_path, stage=stage, runtime=planning(stage), size=(100, 40), approval_quiet_s=3_600.0
    ) as ui:
        await asked(ui)
        assert [line[0] for line in offered(ui)] == ["y", "a", "g", "n", "e"]
        body = ui.approval.query_one("#approval-body")
        drawn = "\n".join(body.render_line(y).text for y in range(body.size.height))
        assert "It is quiet now." in drawn
        await ui.pilot.press("a")
        await ui.settle()
        assert ui.status.mode == "accept-edits"
        assert ui.sent == ["make it shout", f"I approve this plan. Follow it:\n\n{PLAN}"]
        assert "Plan approved. Permission mode: accept-edits" in ui.notices
        (block,) = [block for block in ui.blocks if isinstance(block, ToolBlock)]
        assert (block.title, block.status, block.summary) == ("Shout", "ok", "approved")
        assert "● plan Shout" in ui.drawn_chat


async def test_a_plan_is_changed_in_the_editor_before_it_is_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def edited(_app: object, text: str) -> str:
        return text.replace("Run the tests", "Write a test")

    monkeypatch.setattr("agent_tui.ui.window.edit_text", edited)
    stage = Stage(tmp_path)
    async with running_app(
        tmp_path, stage=stage, runtime=planning(stage), approval_quiet_s=3_600.0
    ) as ui:
        await asked(ui)
        await ui.pilot.press("g")
        await ui.settle()
        assert ui.approval.display
        ui.approval.arm()
        await ui.pilot.press("y")
        await ui.settle()
        assert ui.status.mode == "ask"
        assert ui.sent[1].endswith("2. Write a test")
        assert [todo.text for todo in ui.runtime.conversation.todos][1] == "Write a test"


async def test_what_is_missing_is_said_and_it_goes_on_planning(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(
        tmp_path, stage=stage, runtime=planning(stage), approval_quiet_s=3_600.0
    ) as ui:
        await asked(ui)
        await ui.pilot.press("e")
        await ui.write("the docs")
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.status.mode == "plan"
        (result,) = ui.results
        assert result.text.endswith("They say: the docs")


async def test_the_key_of_the_editor_opens_the_plan_that_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agent_tui.ui.window.edit_text", lambda _app, _text: "1. Mine")
    stage = Stage(tmp_path)
    async with running_app(
        tmp_path, stage=stage, runtime=planning(stage), approval_quiet_s=3_600.0
    ) as ui:
        await asked(ui)
        await ui.pilot.press("ctrl+g")
        await ui.settle()
        ui.approval.arm()
        await ui.pilot.press("y")
        await ui.settle()
        assert ui.sent[1].endswith("\n\n1. Mine")


async def test_g_goes_into_the_prompt_where_nothing_is_to_be_changed(tmp_path: Path):
    stage = Stage(tmp_path)
    command = Reply(tool_calls=(call("c1", "bash", command="make all"),))
    runtime = stage.runtime([command, Reply("Done.")], mode="ask")
    async with running_app(tmp_path, stage=stage, runtime=runtime, approval_quiet_s=3_600.0) as ui:
        await asked(ui)
        await ui.pilot.press("g")
        await ui.settle()
        assert ui.text == "g"
