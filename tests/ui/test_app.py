from contextlib import nullcontext
from pathlib import Path
from threading import Event

import pytest
from textual import events

from agent_tui.agent.pending_approvals import ApprovalAnswer
from agent_tui.events import (
    ApprovalRequest,
    ApprovalRequested,
    ApprovalResolved,
    ContextChanged,
    ReplyFinished,
    ReplyStarted,
    TextDelta,
    TodosChanged,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from agent_tui.messages import (
    AssistantMessage,
    StopReason,
    TextContent,
    Todo,
    ToolResultMessage,
)
from agent_tui.tokens import ContextUsage
from agent_tui.ui.app import AgentApp
from agent_tui.ui.options import UiOptions
from agent_tui.ui.transcript import (
    AssistantBlock,
    ToolBlock,
    UserBlock,
    WelcomeBlock,
)
from tests.support.fake_runtime import FakeModels, FakeRuntime
from tests.support.images import png
from tests.ui.app_support import Ui, running_app
from tests.ui.scenes import StillClock


def reply(text: str, stop_reason: StopReason = "stop") -> AssistantMessage:
    return AssistantMessage(content=(TextContent(text=text),), stop_reason=stop_reason)


async def test_a_reply_streams_into_the_chat(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        assert isinstance(ui.app.ready.chat.blocks[0], WelcomeBlock)
        await ui.send("hello")
        assert ui.runtime.submitted == ["hello"]
        ui.runtime.feed(ReplyStarted("m"), TextDelta("Hi "), TextDelta("there"))
        await ui.settle()
        ui.runtime.finish(ReplyFinished("e2", reply("Hi there")), TurnFinished("done"))
        await ui.settle()
        assert UserBlock("hello") in ui.app.ready.chat.blocks
        assert ui.app.ready.chat.last_reply_text == "Hi there"
        assert ui.app.ready.activity.state is None


async def test_escape_stops_the_turn_and_the_partial_reply_stays(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        ui.runtime.on_abort = (ReplyFinished("e2", reply("Half a", "aborted")),)
        await ui.send("go")
        ui.runtime.feed(ReplyStarted("m"), TextDelta("Half a"))
        await ui.settle()
        await ui.pilot.press("escape")
        await ui.settle()
        last = ui.app.ready.chat.blocks[-1]
        assert isinstance(last, AssistantBlock)
        assert (last.markdown, last.mark) == ("Half a", "interrupted")
        assert not ui.app.ready.turns.is_running


async def test_what_is_sent_while_a_turn_runs_is_queued_and_shown(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("go")
        await ui.send("and then this")
        assert ui.runtime.conversation.inbox.shown == ("and then this",)
        assert ui.app.ready.queue.display
        ui.runtime.finish()
        await ui.settle()
        await ui.settle()
        assert ui.runtime.submitted == ["go", "and then this"]
        assert not ui.app.ready.queue.display


async def test_an_interrupted_turn_gives_the_queue_back_above_the_draft(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("go")
        await ui.send("queued")
        await ui.write("draft")
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.text == "queued\n\ndraft"
        assert ui.runtime.submitted == ["go"]


async def test_alt_up_takes_the_queue_back_while_the_turn_goes_on(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("go")
        await ui.send("queued")
        await ui.pilot.press("alt+up")
        await ui.settle()
        assert ui.text == "queued"
        assert ui.runtime.conversation.inbox.shown == ()
        assert ui.app.ready.turns.is_running


async def test_queued_messages_keep_their_order_pastes_and_images(tmp_path: Path):
    (tmp_path / "shot.png").write_bytes(png(8, 6))
    pasted = "\n".join(map(str, range(50)))
    async with running_app(tmp_path) as ui:
        await ui.send("go")
        for content in (pasted, f"{tmp_path}/shot.png"):
            ui.app.post_message(events.Paste(content))
            await ui.settle()
            await ui.pilot.press("enter")
            await ui.settle()
        shown = ("[paste #1 +49 lines]", "[image #1 shot.png 8x6]")
        assert ui.runtime.conversation.inbox.shown == shown
        await ui.pilot.press("alt+up")
        await ui.settle()
        assert ui.text == "\n\n".join(shown)
        await ui.pilot.press("enter")
        ui.runtime.finish()
        await ui.settle()
        await ui.settle()
        assert ui.runtime.submitted == ["go", f"{pasted}\n\n{shown[1]}"]
        assert [image.mime_type for image in ui.runtime.sent_images[1]] == ["image/png"]


async def test_a_paste_answers_no_approval_and_goes_into_the_draft(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("go")
        await ui.write("draft ")
        ui.runtime.feed(ApprovalRequested(REQUEST))
        await ui.settle()
        ui.app.post_message(events.Paste("yes\ny\n"))
        await ui.settle()
        assert ui.text == "draft yes\ny\n"
        assert ui.runtime.answers == []


async def test_a_message_that_could_not_be_said_comes_back(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        ui.runtime.refusal = "It is too long."
        await ui.send("a long story")
        assert ui.text == "a long story"


@pytest.mark.parametrize(("line", "in_context"), [("!ls -a", True), ("!!ls -a", False)])
async def test_a_shell_command_runs_with_or_without_the_model_seeing_it(
    tmp_path: Path, line: str, in_context: bool
):
    async with running_app(tmp_path) as ui:
        await ui.send(line)
        assert ui.runtime.commands == [("ls -a", in_context)]


async def test_a_tool_is_shown_from_its_start_to_its_result(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("go")
        ui.runtime.feed(ToolStarted("c1", "read", {"path": "a.py"}, "a.py"))
        await ui.settle()
        block = ui.app.ready.chat.blocks[-1]
        assert isinstance(block, ToolBlock)
        assert block.status == "running"
        result = ToolResultMessage(
            tool_call_id="c1",
            tool_name="read",
            content=(TextContent(text="1 x"),),
            details={"summary": "1 line"},
        )
        ui.runtime.feed(ToolFinished("e3", "c1", result))
        await ui.settle()
        block = ui.app.ready.chat.blocks[-1]
        assert isinstance(block, ToolBlock)
        assert (block.status, block.summary) == ("ok", "1 line")


REQUEST = ApprovalRequest(
    id="r1",
    call_id="c1",
    tool_name="bash",
    title="git push",
    body="git push origin main",
    body_kind="command",
    reason="Commands ask in this mode.",
    session_rule="bash(git push *)",
)


async def test_keys_typed_as_an_approval_appears_go_into_the_draft(tmp_path: Path):
    async with running_app(tmp_path, approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        await ui.write("m")
        ui.runtime.feed(ApprovalRequested(REQUEST))
        await ui.settle()
        await ui.write("y nap")
        assert ui.app.ready.approval.display
        assert ui.runtime.answers == []
        assert ui.text == "my nap"


@pytest.mark.parametrize(
    ("key", "choice"), [("y", "once"), ("a", "session"), ("p", "project"), ("n", "no")]
)
async def test_after_a_pause_a_key_answers_and_the_draft_survives(tmp_path: Path, key: str, choice):
    async with running_app(tmp_path, approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        await ui.write("my draft")
        ui.runtime.feed(ApprovalRequested(REQUEST))
        await ui.settle()
        ui.app.ready.approval.arm()
        await ui.pilot.press(key)
        await ui.settle()
        assert ui.runtime.answers == [("r1", ApprovalAnswer(choice))]
        ui.runtime.feed(ApprovalResolved("r1", choice != "no"))
        await ui.settle()
        assert not ui.app.ready.approval.display
        assert ui.text == "my draft"
        assert ui.app.focused is ui.app.prompt.area


async def test_the_panel_arms_itself_once_nothing_was_typed_for_a_while(tmp_path: Path):
    async with running_app(tmp_path, approval_quiet_s=0.01) as ui:
        await ui.send("go")
        ui.runtime.feed(ApprovalRequested(REQUEST))
        await ui.until(lambda: ui.app.ready.approval.is_armed)
        await ui.pilot.press("y")
        await ui.settle()
        assert ui.runtime.answers == [("r1", ApprovalAnswer("once"))]


async def test_a_no_can_say_what_to_do_instead(tmp_path: Path):
    async with running_app(tmp_path, approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        ui.runtime.feed(ApprovalRequested(REQUEST))
        await ui.settle()
        ui.app.ready.approval.arm()
        await ui.pilot.press("e")
        await ui.write("use a branch")
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.runtime.answers == [("r1", ApprovalAnswer("no", "use a branch"))]


async def test_a_letter_that_answers_nothing_goes_on_into_the_prompt(tmp_path: Path):
    async with running_app(tmp_path, approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        ui.runtime.feed(ApprovalRequested(REQUEST))
        await ui.settle()
        ui.app.ready.approval.arm()
        await ui.pilot.press("h")
        await ui.settle()
        await ui.write("ey")
        assert ui.text == "hey"
        assert ui.runtime.answers == []


async def test_a_word_typed_at_once_never_answers_with_its_later_letters(tmp_path: Path):
    async with running_app(tmp_path, approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        ui.runtime.feed(ApprovalRequested(REQUEST))
        await ui.settle()
        ui.app.ready.approval.arm()
        await ui.settle()
        for letter in "go any way":
            ui.app.ready.approval.post_message(
                events.Key("space" if letter == " " else letter, letter)
            )
        await ui.settle()
        assert ui.runtime.answers == []
        assert ui.text == "go any way"


async def test_the_plan_gives_way_to_a_question_and_ends_with_the_turn(tmp_path: Path):
    async with running_app(tmp_path, approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        ui.runtime.feed(TodosChanged((Todo(text="one"),)))
        await ui.settle()
        assert ui.app.ready.plan.display
        ui.runtime.feed(ApprovalRequested(REQUEST))
        await ui.settle()
        assert not ui.app.ready.plan.display
        ui.runtime.feed(ApprovalResolved("r1", allowed=True))
        await ui.settle()
        assert ui.app.ready.plan.display
        ui.runtime.finish()
        await ui.settle()
        assert not ui.app.ready.plan.display


async def test_the_click_that_focuses_the_terminal_answers_nothing(tmp_path: Path):
    async with running_app(tmp_path, size=(80, 40), approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        ui.runtime.feed(ApprovalRequested(REQUEST))
        await ui.settle()
        ui.app.ready.approval.expect_stray_click()
        ui.app.ready.approval.arm()
        await ui.settle()
        await ui.pilot.click(".approval-option")
        await ui.settle()
        assert ui.runtime.answers == []
        await ui.pilot.click(".approval-option")
        await ui.settle()
        assert ui.runtime.answers == [("r1", ApprovalAnswer("once"))]


async def test_no_rule_is_offered_where_none_may_be_made(tmp_path: Path):
    from dataclasses import replace

    async with running_app(tmp_path, approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        ui.runtime.feed(ApprovalRequested(replace(REQUEST, session_rule="")))
        await ui.settle()
        ui.app.ready.approval.arm()
        await ui.pilot.press("a", "p")
        await ui.settle()
        assert ui.runtime.answers == []


async def test_escape_on_an_approval_stops_the_turn(tmp_path: Path):
    async with running_app(tmp_path, approval_quiet_s=3_600.0) as ui:
        ui.runtime.on_abort = (ApprovalResolved("r1", allowed=False),)
        await ui.send("go")
        ui.runtime.feed(ApprovalRequested(REQUEST))
        await ui.settle()
        ui.app.ready.approval.arm()
        await ui.pilot.press("escape")
        await ui.settle()
        assert not ui.app.ready.turns.is_running
        assert not ui.app.ready.approval.display


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
    assert ui.runtime.is_closed


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
        for _ in range(4):
            await ui.pilot.press("shift+tab")
            await ui.pilot.pause()
            seen.append(ui.status.mode)
        assert seen == ["accept-edits", "plan", "full", "ask"]


async def test_the_status_bar_follows_the_context(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("go")
        ui.runtime.conversation.usage = ContextUsage(190_000, 200_000, is_estimate=False)
        ui.runtime.feed(ContextChanged(ui.runtime.conversation.usage))
        await ui.settle()
        assert ui.status.usage.label == "[ctx: 95%]"
        assert ui.status.level == "trigger"


async def test_leaving_while_a_turn_runs_lets_it_record_its_end(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("go")
        await ui.pilot.press("ctrl+c", "ctrl+c")
    assert ui.runtime.is_closed
    assert not ui.runtime.is_busy


async def test_the_first_prompt_is_sent_at_once(tmp_path: Path):
    async with running_app(tmp_path, first_prompt="fix the tests") as ui:
        await ui.until(lambda: ui.runtime.submitted)
        assert ui.runtime.submitted == ["fix the tests"]


async def test_the_history_of_a_project_is_kept(tmp_path: Path):
    file = tmp_path / "history.jsonl"
    async with running_app(tmp_path, history_file=file) as ui:
        await ui.send("/cost")
    async with running_app(tmp_path, history_file=file) as ui:
        await ui.until(lambda: ui.app.ready.history.drafts)
        await ui.pilot.press("up")
        assert ui.text == "/cost"


async def test_leaving_by_command_while_a_turn_runs_is_asked_about(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("go")
        await ui.send("/exit")
        await ui.until(lambda: len(ui.app.screen_stack) == 2)
        await ui.pilot.press("enter", "n")
        await ui.settle()
        assert ui.app.return_value is None
        assert ui.app.ready.turns.is_running
        await ui.send("/exit")
        await ui.until(lambda: len(ui.app.screen_stack) == 2)
        await ui.pilot.press("y")
        await ui.until(lambda: ui.app.return_value is not None)


async def test_a_question_rings_only_while_the_terminal_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with running_app(tmp_path, approval_quiet_s=3_600.0) as ui:
        rung: list[str] = []
        monkeypatch.setattr(ui.app, "bell", lambda: rung.append("ring"))
        await ui.send("go")
        ui.runtime.feed(ApprovalRequested(REQUEST))
        await ui.settle()
        assert rung == []
        ui.runtime.feed(ApprovalResolved("r1", allowed=True))
        ui.app.post_message(events.AppBlur())
        await ui.settle()
        ui.runtime.feed(ApprovalRequested(REQUEST))
        await ui.settle()
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
    async with running_app(tmp_path) as ui:
        for text in ("fix the parser", "write the readme"):
            await ui.send(text)
            ui.runtime.finish()
            await ui.settle()
        await ui.write("draft")
        await ui.pilot.press("ctrl+r")
        await ui.settle()
        await ui.write("parser")
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.text == "fix the parser"


async def test_a_tools_time_does_not_count_the_wait_for_an_answer(tmp_path: Path):
    clock = StillClock()
    request = ApprovalRequest("r", "c", "bash", "make", "make", "command", "why", "")
    async with running_app(tmp_path, clock=clock) as ui:
        await ui.send("go")
        ui.runtime.feed(ToolStarted("c", "bash", {}, "make"), ApprovalRequested(request))
        await ui.settle()
        clock.now += 60
        ui.runtime.feed(ApprovalResolved("r", allowed=True))
        await ui.settle()
        clock.now += 2
        ui.runtime.feed(
            ToolFinished("e", "c", ToolResultMessage(tool_call_id="c", tool_name="bash"))
        )
        await ui.settle()
        tool = next(block for block in ui.app.ready.chat.blocks if isinstance(block, ToolBlock))
        assert tool.elapsed_s == 2


async def test_an_unknown_command_sent_before_the_program_was_ready_comes_back(tmp_path: Path):
    fake = FakeRuntime(tmp_path)
    loaded = Event()

    def load() -> UiOptions:
        loaded.wait()
        return UiOptions(fake.real, FakeModels())

    app = AgentApp(load, folder="~/project")
    async with app.run_test() as pilot:
        ui = Ui(app, fake, pilot)
        try:
            await ui.write("/nonsense")
            await pilot.press("enter")
            await ui.write("hello")
            await pilot.press("enter")
            assert "~/project · starting…" in str(app.status.render())
        finally:
            loaded.set()
        await ui.until(lambda: fake.submitted)
        assert fake.submitted == ["hello"]
        assert ui.text == "/nonsense"
        fake.finish()


async def test_the_chat_is_as_wide_as_the_screen_from_the_start(tmp_path: Path):
    async with running_app(tmp_path, size=(150, 40)) as ui:
        await ui.send("word " * 27)
        chat = ui.app.ready.chat
        rows = [chat.render_line(y).text.rstrip() for y in range(chat.size.height)]
        assert max(map(len, rows)) > 100
