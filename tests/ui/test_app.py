import asyncio
import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.widget import Widget
from textual.widgets import Input

from agent_tui.agent.conversation import Conversation
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.durations import clock_time
from agent_tui.events import ReplyAwaited, TextDelta, ToolFinished, ToolStarted
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import ToolCall, ToolResultMessage, UserMessage
from agent_tui.providers.base import ModelInfo, ModelRef, ProviderError
from agent_tui.sessions.entries import MessageEntry
from agent_tui.ui.app import AgentApp
from agent_tui.ui.chat.lines_above_prompt import activity_text
from agent_tui.ui.controller import Controller
from agent_tui.ui.lines_field import LinesField
from agent_tui.ui.options import UiOptions
from agent_tui.ui.questions import AnswerLine
from agent_tui.ui.transcript.blocks import AssistantBlock, ToolBlock, UserBlock, WelcomeBlock
from tests.support.images import png
from tests.support.models import LOCAL, MODEL, ListedModels
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, asking, held, running_app, sized
from tests.ui.scenes import StillClock

DONE = Reply(text="Done.")


async def test_a_long_message_is_shown_as_being_read_while_its_tokens_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    is_counted = Event()

    def count(_conversation: Conversation, _message: UserMessage) -> str:
        is_counted.wait(60)
        return "It is too large."

    monkeypatch.setattr(Conversation, "too_large", count)
    monkeypatch.setattr(Conversation, "surely_holds", lambda *_: False)
    async with running_app(tmp_path, DONE) as ui:
        await ui.write("row\n" * 20)
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.activity.state is not None)
        assert ui.activity.state is not None
        assert ui.activity.state.label == "Reading your message"
        is_counted.set()
        await ui.until(lambda: ui.activity.state is None)


async def test_a_reply_streams_into_the_chat(tmp_path: Path):
    async with running_app(tmp_path, held("Hi there")) as ui:
        assert isinstance(ui.blocks[0], WelcomeBlock)
        await ui.send("hello")
        assert ui.chat.last_reply_text == "Hi there"
        assert ui.answers == [], "it is in the file when it is whole"
        assert ui.activity.state is not None
        await ui.finish()
        assert ui.sent == ["hello"]
        assert ui.answers == ["Hi there"]
        assert UserBlock("hello") in ui.blocks
        assert ui.chat.last_reply_text == "Hi there"
        assert ui.activity.state is None


async def test_escape_stops_the_turn_and_the_partial_reply_stays(tmp_path: Path):
    async with running_app(tmp_path, held("Half a")) as ui:
        await ui.send("go")
        await ui.pilot.press("escape")
        await ui.settle()
        assert AssistantBlock("Half a", mark="interrupted") in ui.blocks
        assert not ui.is_running


async def test_what_is_sent_while_a_turn_runs_is_queued_and_shown(tmp_path: Path):
    async with running_app(tmp_path, held(), DONE) as ui:
        await ui.send("go")
        await ui.send("and then this")
        assert ui.queued == ("and then this",)
        assert ui.queue.display
        await ui.finish()
        assert ui.sent == ["go", "and then this"]
        assert not ui.queue.display


async def test_an_interrupted_turn_gives_the_queue_back_above_the_draft(tmp_path: Path):
    async with running_app(tmp_path, held()) as ui:
        await ui.send("go")
        await ui.send("queued")
        await ui.write("draft")
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.text == "queued\n\ndraft"
        assert ui.sent == ["go"]


async def test_alt_up_takes_the_queue_back_while_the_turn_goes_on(tmp_path: Path):
    async with running_app(tmp_path, held()) as ui:
        await ui.send("go")
        await ui.send("queued")
        await ui.pilot.press("alt+up")
        await ui.settle()
        assert ui.text == "queued"
        assert ui.queued == ()
        assert ui.is_running


async def test_queued_messages_keep_their_order_pastes_and_images(tmp_path: Path):
    (tmp_path / "shot.png").write_bytes(png(8, 6))
    pasted = "\n".join(map(str, range(50)))
    async with running_app(tmp_path, held(), DONE) as ui:
        await ui.send("go")
        for content in (pasted, f"{tmp_path}/shot.png"):
            ui.app.post_message(events.Paste(content))
            await ui.settle()
            await ui.pilot.press("enter")
            await ui.settle()
        shown = ("[paste #1 +49 lines]", "[image #1 shot.png 8x6]")
        assert ui.queued == shown
        await ui.pilot.press("alt+up")
        await ui.settle()
        assert ui.text == "\n\n".join(shown)
        await ui.pilot.press("enter")
        await ui.finish()
        assert ui.sent == ["go", f"{pasted}\n\n{shown[1]}"]
        assert ui.user_messages[1].typed == (shown[1],)
        assert [image.mime_type for image in ui.user_messages[1].images] == ["image/png"]
        assert "▀▀▀▀▀▀▀▀" in ui.drawn_chat


async def test_what_was_typed_around_a_paste_goes_with_the_message(tmp_path: Path):
    pasted = "\n".join(map(str, range(50)))
    async with running_app(tmp_path, DONE) as ui:
        await ui.pilot.press("s", "e", "e", "space")
        ui.app.post_message(events.Paste(pasted))
        await ui.settle()
        await ui.pilot.press("space", "n", "o", "w", "enter")
        await ui.settle()
        assert ui.sent == [f"see {pasted} now"]
        assert [message.typed for message in ui.user_messages] == [("see", "now")]


async def test_a_paste_answers_no_approval_and_goes_into_the_draft(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=3_600.0) as ui:
        await ask(ui, draft="draft ")
        ui.app.post_message(events.Paste("yes\ny\n"))
        await ui.settle()
        assert ui.text == "draft yes\ny\n"
        assert ui.approval.display


@pytest.mark.thorough
async def test_a_message_that_could_not_be_said_comes_back(tmp_path: Path):
    window = ModelInfo(MODEL.name, 8_000, 1_000, source="setting")
    models = ListedModels(infos={MODEL.name: window})
    async with running_app(tmp_path, models=models) as ui:
        story = "a long story. " * 8_000 + "The end."
        await ui.send(story)
        assert ui.text == story
        assert ui.sent == []
        assert "Shorten it" in ui.notices[-1]


async def test_a_shell_command_runs_with_or_without_the_model_seeing_it(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        for line, in_context in (("!echo ab", True), ("!!echo ab", False)):
            await ui.send(line)
            ran = ui.commands[-1]
            assert (ran.command, ran.exit_code) == ("echo ab", 0)
            assert ran.output.startswith("ab\n")
            assert ran.exclude_from_context is not in_context
        assert len(ui.commands) == 2


async def test_a_tool_is_shown_from_its_start_to_its_result(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    cat = call("c1", "bash", command=f"cat {tmp_path}/pipe")
    runtime = asking(Stage(tmp_path), Reply(tool_calls=(cat,)), DONE)
    runtime.conversation.permissions.mode = "full"
    async with running_app(tmp_path, runtime=runtime) as ui:
        await ui.submit("go")
        await ui.until(lambda: tool_status(ui) == "running")
        await asyncio.to_thread((tmp_path / "pipe").write_text, "out\n")
        await ui.settle()
        (block,) = tools(ui)
        assert (block.status, block.summary) == ("ok", "1 line")


def tools(ui: Ui) -> list[ToolBlock]:
    return [block for block in ui.blocks if isinstance(block, ToolBlock)]


def tool_status(ui: Ui) -> str:
    return tools(ui)[-1].status if tools(ui) else ""


TOUCH = call("c1", "bash", command="touch made.txt")


def asks(*calls: ToolCall) -> tuple[Reply, ...]:
    """A model that calls what has to be allowed once it is let go, and then is done."""
    return (held("", *(calls or (TOUCH,))), DONE)


async def ask(ui: Ui, draft: str = "") -> None:
    """Send something, write a draft, and have the call asked about."""
    await ui.send("go")
    await ui.write(draft)
    await ui.asked()


def is_made(ui: Ui) -> bool:
    return (ui.workspace / "made.txt").exists()


async def test_keys_typed_as_an_approval_appears_go_into_the_draft(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=3_600.0) as ui:
        await ask(ui, draft="m")
        await ui.write("y nap")
        assert ui.approval.display
        assert not is_made(ui)
        assert ui.text == "my nap"


@pytest.mark.parametrize(
    ("key", "made", "rules"),
    [
        ("y", True, []),
        ("a", True, [("bash(touch made.txt)", "session")]),
        ("p", True, [("bash(touch made.txt)", "project")]),
        ("n", False, []),
    ],
)
async def test_after_a_pause_a_key_answers_and_the_draft_survives(
    tmp_path: Path, key: str, made: bool, rules: list[tuple[str, str]]
):
    async with running_app(tmp_path, *asks(), approval_quiet_s=3_600.0) as ui:
        await ask(ui, draft="my draft")
        ui.approval.arm()
        await ui.pilot.press(key)
        await ui.settle()
        assert is_made(ui) is made
        assert [(str(rule), rule.source) for rule in ui.rules] == rules
        assert not ui.approval.display
        assert ui.text == "my draft"
        assert ui.app.focused is ui.app.prompt.area
        assert ui.answers == (["", "Done."] if made else [""]), "a bare no ends the turn"


async def test_the_panel_arms_itself_once_nothing_was_typed_for_a_while(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=0.01) as ui:
        await ask(ui)
        await ui.until(lambda: ui.approval.is_armed)
        await ui.pilot.press("y")
        await ui.settle()
        assert is_made(ui)


async def test_a_no_can_say_what_to_do_instead(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=3_600.0) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press("e")
        await ui.write("use a branch")
        await ui.pilot.press("enter")
        await ui.settle()
        assert not is_made(ui)
        (result,) = ui.results
        assert "use a branch" in result.text


async def test_a_letter_that_answers_nothing_goes_on_into_the_prompt(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=3_600.0) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press("h")
        await ui.settle()
        await ui.write("ey")
        assert ui.text == "hey"
        assert ui.approval.display


async def test_a_word_typed_at_once_never_answers_with_its_later_letters(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=3_600.0) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.settle()
        for letter in "go any way":
            ui.approval.post_message(events.Key("space" if letter == " " else letter, letter))
        await ui.settle()
        assert ui.approval.display
        assert not is_made(ui)
        assert ui.text == "go any way"


async def test_of_the_plan_a_question_leaves_the_present_step_and_it_ends_with_the_turn(
    tmp_path: Path,
):
    steps = [{"text": "one", "status": "completed"}, {"text": "two", "status": "in_progress"}]
    plan = call("c0", "todo", todos=steps)
    script = (Reply(tool_calls=(plan,)), held("", TOUCH), held())
    async with running_app(tmp_path, *script, approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        assert ui.plan.display
        await ui.asked()
        assert str(ui.plan.render()) == "Plan 1/2 ▸ two"
        ui.approval.arm()
        await ui.pilot.press("y")
        await ui.settle()
        assert ui.plan.display
        await ui.finish()
        assert not ui.plan.display


async def test_a_plan_that_a_turn_left_unchanged_is_not_shown_again(tmp_path: Path):
    plan = call("c0", "todo", todos=[{"text": "one"}])
    script = (Reply(tool_calls=(plan,)), held("One."), held("Two."), held("Three."))
    async with running_app(tmp_path, *script) as ui:
        shown: list[bool] = []
        for text in ("go", "go on", "and something else"):
            await ui.send(text)
            shown.append(ui.plan.display)
            await ui.finish()
        assert shown == [True, True, False]


async def test_a_plan_of_an_older_turn_is_not_shown_after_going_back_to_it(tmp_path: Path):
    older = Reply(tool_calls=(call("c0", "todo", todos=[{"text": "one"}]),))
    newer = Reply(tool_calls=(call("c1", "todo", todos=[{"text": "two"}]),))
    script = (
        older,
        Reply(text="A."),
        Reply(text="B."),
        newer,
        Reply(text="C."),
        held("D."),
        held("E."),
    )
    async with running_app(tmp_path, *script) as ui:
        for text in ("go", "go on", "and then two"):
            await ui.send(text)
        entries = ui.runtime.conversation.log.path_entries()
        said = {e.message.text: e.id for e in entries if isinstance(e, MessageEntry)}
        for leaf, is_shown in ((said["B."], False), (said["A."], True)):
            ui.runtime.sessions.branch_to(leaf)
            for event in ui.runtime.sessions.branch_events("", 0):
                ui.app.controller.front.show_events((event,))
            await ui.send("again")
            assert ui.plan.display is is_shown
            await ui.finish()


async def test_the_click_that_focuses_the_terminal_answers_nothing(tmp_path: Path):
    async with running_app(tmp_path, *asks(), size=(80, 40), approval_quiet_s=3_600.0) as ui:
        await ask(ui)
        ui.approval.ignore_focus_click()
        ui.approval.arm()
        await ui.settle()
        await ui.pilot.click("#approval .answer")
        await ui.settle()
        assert ui.approval.display
        assert not is_made(ui)
        await ui.pilot.click("#approval .answer")
        await ui.settle()
        assert is_made(ui)


async def test_no_rule_is_offered_where_none_may_be_made(tmp_path: Path):
    protected = call("c1", "write", path=".git/config", content="x")
    async with running_app(tmp_path, *asks(protected), approval_quiet_s=3_600.0) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press("a", "p")
        await ui.settle()
        assert ui.approval.display
        assert ui.rules == ()
        assert not (ui.workspace / ".git").exists()


async def test_escape_on_an_approval_stops_the_turn(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=3_600.0) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press("escape")
        await ui.settle()
        assert not ui.is_running
        assert not ui.approval.display
        assert not is_made(ui)


async def test_ctrl_c_clears_and_the_second_one_leaves(tmp_path: Path):
    now = [100.0]
    async with running_app(tmp_path, clock=lambda: now[0]) as ui:
        await ui.write("text")
        await ui.pilot.press("ctrl+c")
        assert ui.text == ""
        now[0] += 2.0
        await ui.pilot.press("ctrl+c")
        assert ui.app.return_value is None
        now[0] += 1.0
        await ui.pilot.press("ctrl+c")
        assert ui.app.return_value is not None
    assert ui.is_closed


async def test_ctrl_c_that_clears_does_not_begin_to_leave(tmp_path: Path):
    async with running_app(tmp_path, clock=lambda: 100.0) as ui:
        await ui.write("text")
        await ui.pilot.press("ctrl+c")
        assert ui.text == ""
        assert ui.toasts == []
        await ui.pilot.press("ctrl+c")
        assert ui.app.return_value is None
        assert ui.toasts == ["Press ctrl+c again to leave."]
        await ui.pilot.press("ctrl+c")
        assert ui.app.return_value is not None


async def test_ctrl_c_clears_the_prompt_before_it_stops_a_turn(tmp_path: Path):
    async with running_app(tmp_path, held("Half a"), clock=lambda: 100.0) as ui:
        await ui.send("go")
        await ui.write("/h")
        assert ui.app.prompt.menu.is_open
        await ui.pilot.press("ctrl+c")
        assert ui.text == ""
        assert not ui.app.prompt.menu.is_open
        assert ui.is_running
        assert ui.toasts == ["Press ctrl+c again to stop what runs."]
        await ui.pilot.press("ctrl+c")
        await ui.until(lambda: not ui.is_running)
        assert ui.answers == ["Half a"]
        await ui.pilot.press("ctrl+c")
        assert ui.app.return_value is None
        await ui.pilot.press("ctrl+c")
        assert ui.app.return_value is not None


async def test_ctrl_c_leaves_where_a_turn_does_not_come_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with running_app(tmp_path, held("Half a"), clock=lambda: 100.0) as ui:
        await ui.send("go")
        with monkeypatch.context() as patched:
            patched.setattr(ui.runtime, "abort", lambda: None)
            await ui.pilot.press("ctrl+c", "ctrl+c")
            assert ui.is_running
            assert ui.app.return_value is None
        await ui.pilot.press("ctrl+c")
        assert ui.app.return_value is not None


async def test_text_written_between_two_ctrl_c_is_cleared_first(tmp_path: Path):
    async with running_app(tmp_path, clock=lambda: 100.0) as ui:
        await ui.pilot.press("ctrl+c")
        await ui.write("a thought")
        await ui.pilot.press("ctrl+c")
        assert ui.text == ""
        assert ui.app.return_value is None


async def test_ctrl_c_over_a_screen_leaves_the_prompt_alone(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.write("a draft ")
        ui.app.action_open_palette()
        await ui.until(lambda: len(ui.app.screen_stack) == 2)
        await ui.pilot.press("ctrl+c")
        assert ui.text == "a draft "


async def test_ctrl_d_leaves_only_on_an_empty_prompt(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.write("ab")
        await ui.pilot.press("home", "ctrl+d")
        assert ui.text == "b"
        await ui.pilot.press("ctrl+d", "ctrl+d")
        assert ui.app.return_value is not None


async def test_shift_tab_goes_through_the_permission_modes(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        seen = []
        for _ in range(2):
            await ui.pilot.press("shift+tab")
            await ui.pilot.pause()
            seen.append(ui.status.mode)
        assert seen == ["accept-edits", "plan"]


async def test_full_mode_is_in_the_cycle_of_a_session_that_was_in_it(tmp_path: Path):
    runtime = asking(Stage(tmp_path))
    async with running_app(tmp_path, runtime=runtime) as ui:
        await ui.pilot.press(*["shift+tab"] * 3)
        assert ui.status.mode == "ask"
        await ui.send("/mode full")
        assert ui.status.mode == "full"
        assert ui.app.prompt.has_class("-full")
        await ui.pilot.press(*["shift+tab"] * 4)
        await ui.settle()
        assert ui.status.mode == "full"


async def test_the_status_bar_follows_the_context(tmp_path: Path):
    full = Reply(text="Much was read.", usage=sized(190_000))
    async with running_app(tmp_path, full) as ui:
        assert ui.status.level == "normal"
        await ui.send("go")
        assert ui.status.usage.label == "[ctx: 95%]"
        assert ui.status.level == "trigger"


async def test_leaving_while_a_turn_runs_lets_it_record_its_end(tmp_path: Path):
    async with running_app(tmp_path, held("Half a")) as ui:
        await ui.send("go")
        await ui.pilot.press("ctrl+q")
    assert ui.is_closed
    assert not ui.runtime.is_busy
    assert ui.answers == ["Half a"]


async def test_the_first_prompt_is_sent_at_once(tmp_path: Path):
    async with running_app(tmp_path, DONE, first_prompt="fix the tests") as ui:
        assert ui.sent == ["fix the tests"]


async def test_the_history_of_a_project_is_kept(tmp_path: Path):
    file = tmp_path / "history.jsonl"
    async with running_app(tmp_path, history_file=file) as ui:
        await ui.send("/cost")
    async with running_app(tmp_path, history_file=file) as ui:
        await ui.pilot.press("up")
        assert ui.text == "/cost"


async def test_leaving_by_command_while_a_turn_runs_is_asked_about(tmp_path: Path):
    async with running_app(tmp_path, held()) as ui:
        await ui.send("go")
        await ui.submit("/exit")
        await ui.until(lambda: len(ui.app.screen_stack) == 2)
        await ui.pilot.press("enter", "n")
        await ui.settle()
        assert ui.app.return_value is None
        assert ui.is_running
        await ui.submit("/exit")
        await ui.until(lambda: len(ui.app.screen_stack) == 2)
        await ui.pilot.press("y")
        await ui.until(lambda: ui.app.return_value is not None)


async def test_a_question_rings_only_while_the_terminal_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    script = (held("", TOUCH), held("", call("c2", "bash", command="touch other.txt")))
    async with running_app(tmp_path, *script, approval_quiet_s=3_600.0) as ui:
        rung: list[str] = []
        monkeypatch.setattr(ui.app, "bell", lambda: rung.append("ring"))
        await ask(ui)
        assert rung == []
        ui.approval.arm()
        await ui.pilot.press("y")
        await ui.settle()
        ui.app.post_message(events.AppBlur())
        await ui.settle()
        await ui.asked()
        assert rung == ["ring"]


async def test_the_prompt_can_be_written_in_another_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\necho "from outside" >> "$1"\n', encoding="utf-8")
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    async with running_app(tmp_path) as ui:
        monkeypatch.setattr(ui.app, "suspend", nullcontext)
        await ui.write("draft")
        await ui.pilot.press("ctrl+g")
        await ui.settle()
        assert ui.text == "draft\nfrom outside"


async def test_ctrl_r_finds_what_was_sent_before(tmp_path: Path):
    async with running_app(tmp_path, DONE, DONE) as ui:
        for text in ("fix the parser", "write the readme"):
            await ui.send(text)
        await ui.write("draft")
        await ui.pilot.press("ctrl+r")
        await ui.settle()
        await ui.write("parser")
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.text == "fix the parser"


async def test_a_tools_time_does_not_count_the_wait_for_an_answer(tmp_path: Path):
    clock = StillClock()
    os.mkfifo(tmp_path / "pipe")
    make = call("c1", "bash", command=f"cat {tmp_path}/pipe > made.txt")
    async with running_app(tmp_path, *asks(make), clock=clock, approval_quiet_s=3_600.0) as ui:
        await ask(ui)
        clock.now += 60
        ui.approval.arm()
        await ui.pilot.press("y")
        await ui.until(lambda: not ui.approval.display)
        clock.now += 2
        await asyncio.to_thread((tmp_path / "pipe").write_text, "out\n")
        await ui.settle()
        assert [tool.elapsed_s for tool in tools(ui)] == [2]


@pytest.mark.thorough
async def test_an_unknown_command_sent_before_the_program_was_ready_comes_back(tmp_path: Path):
    stage, loaded, models = Stage(tmp_path), Event(), ListedModels()
    runtime = asking(stage, DONE, models=models)

    def load() -> UiOptions:
        loaded.wait()
        return UiOptions(runtime, CommandServices(models, KnownModels()))

    app = AgentApp(load, folder="~/project")
    async with app.run_test() as pilot:
        ui = Ui(app, runtime, pilot, stage)
        try:
            await ui.write("/nonsense")
            await pilot.press("enter")
            await ui.write("hello")
            await pilot.press("enter")
            assert "~/project · starting…" in str(app.status.render())
        finally:
            loaded.set()
        await ui.started()
        assert ui.sent == ["hello"]
        assert ui.text == "/nonsense"


async def test_messages_sent_while_the_program_starts_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stage, loaded, begun, models = Stage(tmp_path), Event(), asyncio.Event(), ListedModels()
    runtime, begin = asking(stage, DONE, DONE, models=models), Controller.begin

    async def begin_late(controller: Controller, warnings: Sequence[str]) -> None:
        await begun.wait()
        await begin(controller, warnings)

    def load() -> UiOptions:
        loaded.wait()
        return UiOptions(runtime, CommandServices(models, KnownModels()))

    monkeypatch.setattr(Controller, "begin", begin_late)
    app = AgentApp(load)
    async with app.run_test() as pilot:
        ui = Ui(app, runtime, pilot, stage)
        try:
            await ui.submit("first")
        finally:
            loaded.set()
        await ui.until(lambda: app.loaded is not None)
        await ui.submit("second")
        begun.set()
        await ui.until(lambda: ui.sent == ["first", "second"])


async def test_the_answer_to_a_command_sent_as_the_chat_appears_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stage, models, mounted, sent = Stage(tmp_path), ListedModels(), asyncio.Event(), asyncio.Event()
    runtime, mount_all = asking(stage, DONE, models=models), Widget.mount_all

    async def mount_until_sent(widget: Widget, widgets: Iterable[Widget]) -> None:
        await mount_all(widget, widgets)
        if widget.id == "upper":
            mounted.set()
            await sent.wait()

    monkeypatch.setattr(Widget, "mount_all", mount_until_sent)
    app = AgentApp(lambda: UiOptions(runtime, CommandServices(models, KnownModels())))
    async with app.run_test() as pilot:
        ui = Ui(app, runtime, pilot, stage)
        await mounted.wait()
        await ui.write("/copy")
        await pilot.press("enter")
        sent.set()
        await ui.started()
        await ui.until(lambda: "No reply to copy yet." in ui.notices)


async def test_the_chat_is_as_wide_as_the_screen_from_the_start(tmp_path: Path):
    async with running_app(tmp_path, DONE, size=(150, 40)) as ui:
        await ui.send("word " * 27)
        chat = ui.chat
        rows = [chat.render_line(y).text.rstrip() for y in range(chat.size.height)]
        assert max(map(len, rows)) > 100


async def test_a_draft_that_ctrl_c_clears_is_in_the_history(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.write("a long thought")
        await ui.pilot.press("ctrl+c")
        assert ui.text == ""
        await ui.pilot.press("up")
        assert ui.text == "a long thought"


async def test_a_turn_that_is_stopped_while_it_waits_to_try_again_says_so(tmp_path: Path):
    busy = ProviderError("overloaded", "The server is overloaded (529).", retry_after_s=60.0)
    async with running_app(tmp_path, Reply(error=busy)) as ui:
        await ui.submit("hello")
        await ui.until(lambda: ui.activity.state is not None and ui.activity.state.detail)
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.notices[-1] == "Stopped. /retry continues."


async def test_a_usage_limit_is_counted_down_until_esc_stops_it(tmp_path: Path):
    limited = ProviderError("rate_limit", "Too fast.", retry_after_s=5 * 3_600.0)
    async with running_app(tmp_path, Reply(error=limited), Reply("There you are.")) as ui:
        services = ui.runtime.services
        services.settings = services.settings.model_copy(update={"limit_wait_h": 12.0})
        await ui.submit("hello")
        await ui.until(lambda: ui.activity.state is not None and ui.activity.state.ends_at_s)
        state = ui.activity.state
        assert state is not None
        now_s = services.wall_clock()
        shown = activity_text(state, 1.0, now_s)
        resets = clock_time(state.ends_at_s, now_s)
        assert shown.startswith("Continuing in 5h 00m… · esc stops · Usage limit of ")
        assert shown.endswith(f" reached. It resets at {resets}.")
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.notices[-1] == "Stopped. /retry continues."
        await ui.submit("/retry")
        await ui.settle()
        assert ui.runtime.unfinished_wait is None


@pytest.mark.parametrize(
    "reply", [held(), held("Well, "), held("", call("c1", "bash", command="touch made.txt"))]
)
async def test_a_turn_that_is_stopped_says_how_to_continue(tmp_path: Path, reply: Reply):
    async with running_app(tmp_path, reply) as ui:
        await ui.send("hello")
        if reply.tool_calls:
            await ui.asked()
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.notices == ["Stopped. /retry continues."]


async def test_the_time_that_the_person_is_waited_for_is_not_counted(tmp_path: Path):
    clock = StillClock()
    async with running_app(tmp_path, asks()[0], held("x"), clock=clock) as ui:
        await ask(ui)
        clock.now += 4_000
        state = ui.activity.state
        assert state is not None
        assert "0s" in activity_text(state, clock.now).split(" · ")
        assert "tokens" not in activity_text(replace(state, output_chars=90), clock.now)
        request = ui.approval.request
        assert request is not None
        ui.app.controller.answer_approval(request.id, ApprovalAnswer("once"))
        await ui.settle()
        clock.now += 5
        state = ui.activity.state
        assert state is not None
        assert "5s" in activity_text(state, clock.now).split(" · ")


async def test_words_that_are_long_in_coming_are_counted_until_they_come(tmp_path: Path):
    clock = StillClock()
    async with running_app(tmp_path, held("Well, "), clock=clock) as ui:
        await ui.send("hello")
        clock.now += 4_000
        for is_alive, label in ((True, "Thinking"), (False, "No response from the model for")):
            ui.show_events(ReplyAwaited(65.0, is_alive))
            state = ui.activity.state
            assert state is not None
            assert (
                activity_text(state, clock.now + 60) == f"{label} 2m 05s… · ↓1 tokens · esc stops"
            )
        ui.show_events(TextDelta("then."))
        state = ui.activity.state
        assert state is not None
        assert activity_text(state, clock.now).startswith("Writing… · 1h 06m")
        ui.show_events(ToolStarted("c1", "explore", {}, "look"), ReplyAwaited(65.0, True))
        state = ui.activity.state
        assert state is not None
        assert state.label == "Running explore"


async def test_a_call_that_still_runs_is_named_when_another_has_ended(tmp_path: Path):
    async with running_app(tmp_path, held("Well, ")) as ui:
        await ui.send("hello")
        for call_id, name in (("c1", "read"), ("c2", "bash")):
            ui.show_events(ToolStarted(call_id, name, {}, name))
        for call_id, name, label in (
            ("c1", "read", "Running bash"),
            ("c2", "bash", "Waiting for the model"),
        ):
            result = ToolResultMessage(tool_call_id=call_id, tool_name=name, content=())
            ui.show_events(ToolFinished("e", call_id, result))
            assert ui.activity.state is not None
            assert ui.activity.state.label == label


LONG = (
    "cd src && python -m pytest -q tests/unit/test_parser.py tests/unit/test_lexer.py --maxfail=1"
)


async def test_what_an_answer_would_allow_is_wholly_readable(tmp_path: Path):
    calls = [call("c1", "bash", command="npm run build -- --target=" + "x" * 60)]
    async with running_app(tmp_path, *asks(*calls), size=(60, 24)) as ui:
        await ask(ui)
        for size in ((60, 24), (80, 24), (200, 50)):
            await ui.pilot.resize_terminal(*size)
            await ui.settle()
            shown = "".join(str(line.render()) for line in ui.app.query(AnswerLine))
            letters = "".join(shown.split())
            assert "exactlythiscommand" in letters
            assert "Yes,withrulesforthissessionnpmrunbuild*" in letters
            line = next(
                line for line in ui.app.query(AnswerLine) if "this session" in str(line.render())
            )
            assert line.size.height * line.size.width >= len(str(line.render()))


async def test_a_rule_for_several_commands_is_called_this_one(tmp_path: Path):
    async with running_app(tmp_path, *asks(call("c1", "bash", command=LONG))) as ui:
        await ask(ui)
        lines = [str(line.render()) for line in ui.app.query(AnswerLine) if line.display]
        assert [line.endswith("exactly this command") for line in lines][:3] == [False, True, True]


@pytest.mark.parametrize("key", ["s", "4", "w", "5"])
async def test_a_compound_command_is_allowed_by_rules_for_its_parts(tmp_path: Path, key: str):
    calls = asks(call("c1", "bash", command="cd . && pytest --version | sort && make all"))
    async with running_app(tmp_path, *calls, size=(80, 24), approval_quiet_s=3_600.0) as ui:
        await ask(ui)
        rows = [line for line in ui.app.query(AnswerLine) if "with rules for" in str(line.render())]
        assert [row.size.height for row in rows] == [1]
        assert str(rows[0].render()).endswith("with rules for this session   pytest * · make all *")
        ui.approval.arm()
        await ui.pilot.press(key)
        await ui.settle()
        assert [str(rule) for rule in ui.rules] == ["bash(pytest *)", "bash(make all *)"]
        assert {rule.source for rule in ui.rules} == {"session" if key in "s4" else "project"}


async def test_rules_for_parts_are_edited_together(tmp_path: Path):
    calls = asks(call("c1", "bash", command="pytest --version; make all"))
    async with running_app(tmp_path, *calls, approval_quiet_s=3_600.0) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press("r")
        words = ui.app.query_one("#approval-rule", Input)
        assert words.value == "bash(pytest *) bash(make all *)"
        words.value = "bash(pytest -q (x) *), bash(make *)"
        await ui.pilot.press("enter")
        assert ui.approval.display
        words.value = "bash(pytest *), bash(make *)"
        await ui.pilot.press("enter")
        await ui.settle()
        rules = [str(rule) for rule in ui.runtime.conversation.permissions.book.rules]
        assert rules == ["bash(pytest *)", "bash(make *)"]


async def test_a_rule_is_edited_before_it_is_granted(tmp_path: Path):
    calls = asks(call("c1", "bash", command="make all"))
    async with running_app(tmp_path, *calls, approval_quiet_s=3_600.0) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press("r")
        words = ui.app.query_one("#approval-rule", Input)
        assert words.value == "bash(make all *)"
        marked = str(ui.app.query_one("AnswerLine.-marked", AnswerLine).render())
        assert marked.startswith("›r"), "the mark is on what is being written"
        words.value = "bash(make"
        await ui.pilot.press("enter")
        assert ui.approval.display
        assert "is not a rule" in str(ui.approval.border_subtitle)
        words.value = "bash(make *)"
        await ui.pilot.press("enter")
        await ui.settle()
        rules = [str(rule) for rule in ui.runtime.conversation.permissions.book.rules]
        assert rules == ["bash(make *)"]


@pytest.mark.parametrize(
    ("keys", "is_done"),
    [
        (("enter",), True),
        (("1",), True),
        (("down", "enter"), True),
        (("up", "up", "enter"), False),
        (("6",), False),
        (("down", "up", "up", "enter"), None),
    ],
)
async def test_arrows_enter_and_digits_answer(tmp_path: Path, keys, is_done):
    async with running_app(tmp_path, *asks(), approval_quiet_s=3_600.0) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press(*keys)
        await ui.settle()
        if is_done is None:  # the last answer: words
            assert ui.app.query_one("#approval-words", LinesField).display
        else:
            assert is_made(ui) == is_done
            assert not ui.approval.display


async def test_another_mode_in_the_middle_of_a_reply_loses_nothing_of_it(tmp_path: Path):
    async with running_app(tmp_path, held("sunrise ")) as ui:
        await ui.send("go")
        await ui.pilot.press("shift+tab")
        await ui.settle()
        assert ui.status.mode == "accept-edits"
        await ui.finish()
        assert ui.answers == ["sunrise "]
        assert not ui.is_running
        assert ui.drawn_chat.count("sunrise") == 1
        (welcome,) = [block for block in ui.blocks if isinstance(block, WelcomeBlock)]
        assert dict(welcome.facts)["mode"].startswith("accept-edits")


async def test_the_first_screen_offers_what_a_tiny_model_can_do(tmp_path: Path):
    infos = {"local/tiny": ModelInfo("local/tiny", 8_192, 2_048, is_tiny=True)}
    async with running_app(tmp_path, models=ListedModels(infos=infos)) as ui:
        assert "What does this project do?" in ui.drawn_chat
        ui.runtime.set_model(ModelRef("local/tiny"))
        ui.app.view.status.refresh()
        await ui.settle()
        assert "local/tiny is only for trying the program" in ui.drawn_chat
        assert "/tour" in ui.drawn_chat
        assert "What does this project do?" not in ui.drawn_chat


async def test_choosing_a_tiny_model_says_that_it_is_for_trying(tmp_path: Path):
    infos = {LOCAL.name: ModelInfo(LOCAL.name, 8_192, 2_048, is_tiny=True)}
    async with running_app(tmp_path, models=ListedModels(infos=infos)) as ui:
        await ui.send(f"/model {LOCAL.name}")
        told = f"{LOCAL.name} is only for trying the program"
        assert any(notice.startswith(told) for notice in ui.notices)


async def test_an_editor_that_cannot_be_started_leaves_the_screen_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VISUAL", str(tmp_path / "missing"))
    done: list[str] = []
    monkeypatch.setattr(HeadlessDriver, "can_suspend", property(lambda _driver: True))
    for name in ("suspend_application_mode", "resume_application_mode"):
        monkeypatch.setattr(HeadlessDriver, name, lambda _driver, name=name: done.append(name))
    async with running_app(tmp_path) as ui:
        await ui.write("draft")
        await ui.pilot.press("ctrl+g")
        await ui.until(lambda: ui.toasts)
        assert "cannot be started" in ui.toasts[-1]
        assert done == ["suspend_application_mode", "resume_application_mode"]
        assert ui.text == "draft"
