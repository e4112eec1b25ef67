"""The screen while the agent works toward a goal, and when its session is opened again."""

import html
from pathlib import Path

from agent_tui.features.goal.goal import Goal
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.ui.chat.history_blocks import blocks_of
from agent_tui.ui.chat.lines_above_prompt import FeatureLines
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.transcript.blocks import BashBlock, NoticeBlock
from tests.features.goal.pursuit import open_goal
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, held, running_app

GOAL = '/goal There is an a.txt. --check "test -f a.txt"'
WRITE = call("w", "write", path="a.txt", content="x\n")
DONE = Reply(text="It is there.")
MET = Reply(text="VERDICT: met")


def line(ui: Ui) -> str:
    shown = ui.app.query_one(FeatureLines)
    return str(shown.render()) if shown.display else ""


async def test_one_line_shows_how_far_it_is_and_the_chat_how_it_ended(tmp_path: Path):
    stage = Stage(tmp_path)
    replies = [Reply(text="Let me think."), held("Now.", WRITE), DONE, MET]
    runtime = stage.runtime(replies)
    async with running_app(tmp_path, *replies, stage=stage, runtime=runtime) as ui:
        await ui.submit(GOAL)
        await ui.settle()
        assert line(ui) == "goal 0 of 1 check · 1 turn  There is an a.txt."
        while ui.is_running:
            ui.let_go()
            await ui.settle()
        assert line(ui) == ""
        assert "Goal met after 2 turns. The check passes. The judge finds nothing missing." in (
            ui.notices
        )
        assert [b.command for b in ui.blocks if isinstance(b, BashBlock)] == ["test -f a.txt"] * 3
        again = blocks_of(runtime.conversation.log.path_entries(), runtime.parts)
        said = [block.text for block in again if isinstance(block, NoticeBlock)]
        assert "Goal: There is an a.txt." in said
        assert any(text.startswith("Goal met after 2 turns.") for text in said)


async def test_esc_pauses_it_and_a_message_goes_on(tmp_path: Path):
    stage = Stage(tmp_path)
    replies = [held("I begin."), Reply(tool_calls=(WRITE,)), DONE, MET]
    runtime = stage.runtime(replies)
    async with running_app(tmp_path, *replies, stage=stage, runtime=runtime) as ui:
        await ui.submit(GOAL)
        await ui.settle()
        await ui.pilot.press("escape")
        await ui.until(lambda: not ui.is_running)
        assert line(ui) == "goal 0 of 1 check · 1 turn  /goal go continues  There is an a.txt."
        await ui.send("Write it now.")
        await ui.until(lambda: not ui.is_running)
        assert any(text.startswith("Goal met after 2 turns.") for text in ui.notices)


async def test_the_command_shows_ends_and_explains(tmp_path: Path):
    stage = Stage(tmp_path)
    replies = [held("I begin."), DONE]
    runtime = stage.runtime(replies)
    async with running_app(tmp_path, *replies, stage=stage, runtime=runtime) as ui:
        await ui.submit("/goal")
        assert any(text.startswith("No goal is set. Usage: /goal TEXT") for text in ui.notices)
        await ui.submit("/goal go")
        assert any(text.startswith("No goal is open.") for text in ui.notices)
        await ui.submit(GOAL)
        await ui.settle()
        await ui.submit("/goal stop")
        assert line(ui) == ""
        ui.let_go()
        await ui.until(lambda: not ui.is_running)
        assert len([block for block in ui.blocks if isinstance(block, BashBlock)]) == 1
        goal: Goal | None = open_goal(ui.app.runtime)
        assert goal is None


async def test_without_a_sandbox_the_user_decides_once_whether_checks_run(tmp_path: Path):
    async with running_app(tmp_path, Reply(text="I begin."), DONE) as ui:
        await ui.submit('/goal It is installed. --check "make install"')
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        shown = html.unescape(ui.app.export_screenshot()).replace("\xa0", " ")
        assert "Run the checks after every turn?" in shown
        assert "$ make install" in shown
        await ui.pilot.press("escape")
        await ui.until(lambda: "Goal not set." in ui.notices)
        assert open_goal(ui.app.runtime) is None
