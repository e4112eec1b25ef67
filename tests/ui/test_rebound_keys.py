"""Keys the person chose: they act, and everything that names a key names them."""

from pathlib import Path

from agent_tui.config import Settings
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.key_actions import KeyMap, keys_in_force
from agent_tui.ui.app import AgentApp
from agent_tui.ui.chat.lines_above_prompt import queue_lines
from agent_tui.ui.keys import APP_BINDINGS
from agent_tui.ui.screens.listing import CommandPalette, HistoryPicker, palette_rows
from agent_tui.ui.status.status_view import Situation, hint_text
from agent_tui.ui.transcript.tool_lines import unfold_hint
from tests.support.runtime import Stage
from tests.ui.app_support import asking, held, running_app

ACTIONS = [binding for binding in APP_BINDINGS if binding.show]


def with_keys(**keys: object) -> Settings:
    return Settings.model_validate({"keys": keys})


async def test_another_key_does_it_and_the_usual_one_no_longer(tmp_path: Path):
    settings = with_keys(permission_mode="f5", interrupt=["escape", "ctrl+x"], palette="")
    async with running_app(tmp_path, held("part"), settings=settings) as ui:
        permissions = ui.runtime.conversation.permissions
        await ui.pilot.press("shift+tab")
        assert permissions.mode == "ask"
        await ui.pilot.press("f5")
        assert permissions.mode == "accept-edits"
        await ui.pilot.press("ctrl+p")
        await ui.settle()
        assert not isinstance(ui.app.screen, CommandPalette)
        await ui.send("go")
        assert ui.runtime.is_busy
        await ui.pilot.press("ctrl+x")
        await ui.until(lambda: not ui.runtime.is_busy)


async def test_a_key_of_text_fields_is_the_action_s(tmp_path: Path):
    """ctrl+e goes to the end of the line elsewhere, ctrl+a to its start here, too."""
    async with running_app(tmp_path, settings=with_keys(toggle_thinking="ctrl+e")) as ui:
        await ui.write("draft")
        await ui.pilot.press("ctrl+a", "ctrl+e")
        assert ui.app.prompt.area.cursor_location == (0, 0)
        assert ui.chat.show_thinking


async def test_the_prompt_s_own_keys(tmp_path: Path):
    settings = with_keys(
        submit="ctrl+enter", newline="enter", history_older="alt+p", history_search="f7", undo="f6"
    )
    async with running_app(tmp_path, held("first"), settings=settings) as ui:
        await ui.write("one")
        await ui.pilot.press("enter", "2")
        assert ui.text == "one\n2"
        await ui.pilot.press("f6")
        assert ui.text != "one\n2"
        written = ui.text
        await ui.pilot.press("ctrl+enter")
        await ui.settle()
        assert ui.text == ""
        await ui.pilot.press("up")
        assert ui.text == ""
        await ui.pilot.press("alt+p")
        assert ui.text == written.strip()
        await ui.pilot.press("f7")
        await ui.until(lambda: isinstance(ui.app.screen, HistoryPicker))


async def test_pages_palette_and_hints_name_them(tmp_path: Path):
    settings = with_keys(find="f3", toggle_details="f4", permission_mode="f5", take_back_queue="")
    async with running_app(tmp_path, settings=settings) as ui:
        rows = {row.title: row.columns for row in palette_rows(ACTIONS, keys_in_force())}
        assert rows["Search the chat"] == ("f3",)
        assert rows["Move queued messages back to the prompt"] == ("",)
        told = [row for section in ui.app.controller.front.help().keys for row in section.rows]
        assert ("f3", "search the chat") in told
        assert ("—", "edit queued messages") in told
        assert "f5 mode: ask" in hint_text(Situation("idle", "ask"))
        assert unfold_hint() == " · f4"
        assert "takes them back" not in queue_lines(("wait",)).plain


async def test_a_new_screen_begins_with_the_usual_keys(tmp_path: Path):
    async with running_app(tmp_path, settings=with_keys(find="f3")):
        assert keys_in_force().first_key("find") == "f3"
    AgentApp(lambda: None)  # type: ignore[arg-type,return-value]
    assert keys_in_force() == KeyMap()


async def test_a_question_names_the_key_that_stops(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = asking(stage, Reply(tool_calls=(call("c1", "write", path="a.txt", content="x"),)))
    settings = with_keys(interrupt="ctrl+x")
    options = {"stage": stage, "runtime": runtime, "approval_quiet_s": 3_600.0}
    async with running_app(tmp_path, settings=settings, **options) as ui:
        await ui.send("go")
        ui.approval.arm()
        assert "ctrl+x" in str(ui.approval.border_subtitle)
        await ui.pilot.press("ctrl+x")
        await ui.until(lambda: not ui.runtime.is_busy)
