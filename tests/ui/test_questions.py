"""What holds for every question: a marked row, one set of keys, answers that come too early."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from textual import events

from agent_tui.commands.core.front import Choice, Page, Question, TextQuestion, loss_question
from agent_tui.commands.trust import server_question, trust_question
from agent_tui.config import Settings
from agent_tui.drafts.draft import Draft
from agent_tui.events import (
    ApprovalRequest,
    ApprovalRequested,
    ApprovalResolved,
    ToolStarted,
)
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import ToolCall
from agent_tui.permissions.rules import INSIDE_RULE
from agent_tui.permissions.trust import TrustQuestion
from agent_tui.tools.server_spec import ServerSpec
from agent_tui.ui.app import AgentApp
from agent_tui.ui.approval_panel import answers_to, first_mark
from agent_tui.ui.chat.lines_above_prompt import activity_text
from agent_tui.ui.lines_field import LinesField
from agent_tui.ui.parts import KeysLine
from agent_tui.ui.prompt.area import BURST_S
from agent_tui.ui.questions import AnswerLine, AnswerList, AnswerRow, EarlyKeys
from agent_tui.ui.screens.choice import ChoiceScreen, LineInputScreen
from agent_tui.ui.screens.modal import PageScreen
from agent_tui.ui.transcript.blocks import UserBlock
from tests.ui.app_support import Ui, held, running_app

QUIET_S = 3_600.0
TOUCH = call("c1", "bash", command="touch made.txt")
REQUEST = ApprovalRequest("r", "c", "bash", "x", "x", "command", "", "bash(x)", ("bash(x *)",))
WAYS = Question(
    "Which way?",
    ("one", "two"),
    (Choice("read", "read it", "r"), Choice("fork", "fork it", "f"), Choice("no", "leave it", "n")),
)


def asks(*calls: ToolCall) -> tuple[Reply, ...]:
    return (held("", *(calls or (TOUCH,))), Reply(text="Done."))


def slow_machine(ui: Ui) -> None:
    """However long the test takes, keys are pressed one right after the other."""
    ui.app.prompt.area.repeated.within_s = 3_600.0


async def ask(ui: Ui, draft: str = "") -> None:
    """Send something, write a draft, and have the call asked about."""
    await ui.send("go")
    await ui.write(draft)
    await ui.asked()


def screen_text(ui: Ui) -> str:
    return "\n".join(screen_rows(ui))


def screen_rows(ui: Ui) -> list[str]:
    """What stands on the terminal."""
    strips = ui.app.screen._compositor.render_strips()
    return [strip.text for strip in strips]


def is_made(ui: Ui) -> bool:
    return (ui.workspace / "made.txt").exists()


def marked(ui: Ui) -> list[str]:
    lines = [str(line.render()) for line in ui.app.screen.query(AnswerLine) if line.display]
    return [line.strip("› ") for line in lines if line.startswith("›")]


@pytest.mark.parametrize(
    "question",
    [
        trust_question(
            TrustQuestion(Path("/proj"), (), "", has_repository=False, state="not asked")
        ),
        server_question(ServerSpec("notes", "server", ("notes",))),
        loss_question("Delete it?", "It is gone then."),
    ],
    ids=lambda question: question.title,
)
def test_a_question_of_consequence_marks_no(question: Question[object]):
    assert question.choices[question.marked].key == "n"


@pytest.mark.thorough
async def test_a_long_text_names_its_scroll_keys_and_goes_to_its_end(tmp_path: Path):
    question = replace(WAYS, facts=tuple(f"line {number}" for number in range(200)))
    async with running_app(tmp_path) as ui:
        screen = ChoiceScreen(question)
        await ui.app.push_screen(screen)
        facts = screen.query_one("#choice-scroll")
        await ui.until(lambda: "j/k scroll" in screen_text(ui))
        for key, place in (("end", facts.max_scroll_y), ("home", 0)):
            await ui.pilot.press(key)
            assert facts.scroll_offset.y == place, key
        await ui.app.pop_screen()
        await ui.app.push_screen(ChoiceScreen(WAYS))
        await ui.settle()
        assert "j/k scroll" not in screen_text(ui)


# Approvals


async def test_a_question_marks_once_from_the_start(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        assert not ui.approval.is_armed
        assert marked(ui) == ["y  Yes, once"]
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.approval.display, "Enter waits for the pause, too"
        ui.approval.arm()
        await ui.pilot.press("enter")
        await ui.settle()
        assert is_made(ui)
        assert ui.rules == ()


async def test_a_page_above_a_question_says_that_one_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with running_app(tmp_path, *asks()) as ui:
        told: list[str] = []
        monkeypatch.setattr(AgentApp, "notify", lambda _app, text, **_: told.append(text))
        await ui.send("go")
        await ui.submit("/help")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        await ui.asked()
        assert told == ["You are asked for approval. Close this page to answer."]
        assert waiting(ui) == [told[0]]
        await ui.app.push_screen(PageScreen(Page("Another page", ())))
        assert waiting(ui) == [told[0]]
        ui.runtime.abort()
        await ui.until(lambda: waiting(ui) == [""])
        form = asyncio.create_task(ui.app.window.wait_for_chat(0))
        await ui.until(lambda: waiting(ui) == told[1:])
        form.cancel()
        await ui.until(lambda: waiting(ui) == [""])


def waiting(ui: Ui) -> list[str]:
    return [str(frame.border_subtitle or "") for frame in ui.app.screen.query(".frame")]


async def test_a_loss_is_marked_no(tmp_path: Path):
    lost = call("c1", "bash", command="git push --force origin main")
    async with running_app(tmp_path, *asks(lost), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        assert marked(ui) == ["n  No, and stop"]
        ui.approval.arm()
        await ui.pilot.press("enter")
        await ui.settle()
        assert not ui.approval.display
        assert ui.answers == [""]


def test_the_mark_is_on_the_smallest_yes_or_on_no():
    for request in (REQUEST, replace(REQUEST, session_rule="", part_rules=())):
        assert answers_to(request)[first_mark(request)].choice == "once"
        lost = replace(request, is_loss=True)
        assert answers_to(lost)[first_mark(lost)].choice == "no"


def test_all_edits_are_offered_whether_or_not_a_rule_can_be_made():
    edit = replace(REQUEST, body_kind="diff", part_rules=(), is_edit=True)
    assert [answer.key for answer in answers_to(edit)] == [*"yaprcne"]
    assert [answer.key for answer in answers_to(replace(edit, session_rule=""))] == [*"yacne"]
    assert answers_to(edit)[1].choice == "edits"


def test_an_answer_that_accepts_edits_says_whether_commands_run_then():
    edit = replace(REQUEST, body_kind="diff", part_rules=(), is_edit=True)
    plan = replace(REQUEST, body_kind="plan")
    for request, label in (
        (edit, "Yes, and all edits in this session"),
        (
            replace(edit, frees_commands=True),
            "Yes, and all edits and sandboxed commands in this session",
        ),
        (plan, "Yes, and accept edits"),
        (replace(plan, frees_commands=True), "Yes, and accept edits and sandboxed commands"),
    ):
        assert answers_to(request)[1].label == label


def test_a_command_inside_the_sandbox_is_answered_for_the_whole_session():
    request = replace(REQUEST, session_rule=INSIDE_RULE, part_rules=())
    assert [(answer.key, answer.choice, answer.label) for answer in answers_to(request)[1:3]] == [
        ("a", "session", "Yes, and all sandboxed commands in this session"),
        ("p", "project", "Yes, and all sandboxed commands, always in this project"),
    ]
    assert len(answers_to(request)) == 6


@pytest.mark.parametrize("key", ["a", "shift+tab"])
async def test_yes_to_all_edits_makes_this_one_and_asks_about_no_other(tmp_path: Path, key: str):
    writes = [call(name, "write", path=f"{name}.txt", content="x\n") for name in ("c1", "c2")]
    async with running_app(tmp_path, *asks(*writes), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        assert "a  Yes, and all edits in this session   shift+tab" in screen_text(ui)
        ui.approval.arm()
        await ui.pilot.press(key)
        await ui.settle()
        assert not ui.approval.display
        assert (ui.workspace / "c1.txt").exists()
        assert (ui.workspace / "c2.txt").exists()
        assert ui.status.mode == "accept-edits"


async def test_the_screen_rests_while_a_question_is_open(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        laid_out: list[object] = []
        ui.app.screen.screen_layout_refresh_signal.subscribe(ui.approval, laid_out.append)
        for _ in range(20):
            await ui.pilot.pause(0.02)
        assert laid_out == []


async def test_an_edit_that_is_always_asked_about_is_approved_alone(tmp_path: Path):
    write = call("c1", "write", path=".env", content="x\n")
    async with running_app(tmp_path, *asks(write), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        assert "all edits" not in screen_text(ui)
        ui.approval.arm()
        await ui.pilot.press("shift+tab")
        assert ui.approval.display


async def test_what_is_said_with_a_yes_reaches_the_model_with_the_result(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press("c", *"run it", "enter")
        await ui.settle()
        assert is_made(ui)
        said = [block.text for block in ui.blocks if isinstance(block, UserBlock)]
        assert said == ["go", "run it"]
        assert ui.answers[-1] == "Done."


@pytest.mark.thorough
@pytest.mark.parametrize("typed", ["y", "yyy", "n", "2", "j", "yynap", "any", "2yj"])
async def test_an_answer_that_comes_too_early_is_no_answer_and_no_writing(
    tmp_path: Path, typed: str
):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        await ui.write(typed)
        await ui.pilot.press("enter")
        await ui.settle()
        ui.approval.arm()
        await ui.settle()
        assert ui.approval.display
        assert ui.text == ""
        assert ui.queued == ()
        await ui.pilot.press("y")
        await ui.settle()
        assert is_made(ui)
        assert ui.text == ""


@pytest.mark.parametrize(("before", "after"), [("y", ""), ("yyn", ""), ("yy", "nap")])
async def test_answers_typed_just_before_the_question_leave_the_prompt(
    tmp_path: Path, before: str, after: str
):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui, draft=before)
        await ui.write(after)
        assert ui.text == ""
        ui.approval.arm()
        await ui.settle()
        assert ui.approval.display
        await ui.pilot.press("n")
        await ui.settle()
        assert ui.text == ""


TOO_EARLY = "Typed too early and removed from the prompt: "


@pytest.mark.parametrize("before", ["y", "yy", "2"])
async def test_answers_from_before_the_question_leave_the_prompt_when_it_is_answered(
    tmp_path: Path, before: str
):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ui.send("go")
        await ui.write(before)
        ui.app.prompt.changed_at = float("-inf")
        await ui.asked()
        ui.approval.arm()
        assert ui.text == before, "until the question ends, it may become a message"
        await ui.pilot.press("y")
        await ui.settle()
        assert is_made(ui)
        assert ui.text == ""
        assert ui.toasts == [TOO_EARLY + before]
        await ui.write("/jobs")
        ui.app.prompt.close_menu()
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.sent == ["go"], "a command is no message"


@pytest.mark.parametrize(("before", "after"), [("yes please", ""), ("y", "es please"), ("Y", "")])
async def test_what_is_more_than_answers_stays_when_the_question_ends(
    tmp_path: Path, before: str, after: str
):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ui.send("go")
        await ui.write(before)
        ui.app.prompt.changed_at = float("-inf")
        await ui.asked()
        await ui.write(after)
        ui.approval.arm()
        await ui.pilot.press("n")
        await ui.settle()
        assert not is_made(ui)
        assert ui.text == before + after
        assert ui.toasts == []


async def test_a_held_answer_that_is_dropped_is_named(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        await ui.write("yn")
        assert ui.toasts == []
        ui.approval.arm()
        await ui.settle()
        assert ui.toasts == [TOO_EARLY + "yn"]


async def test_a_letter_that_stood_in_the_prompt_for_long_stays_while_it_is_asked(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ui.send("go")
        await ui.write("y")
        ui.app.prompt.changed_at = float("-inf")
        await ui.asked()
        ui.approval.arm()
        assert ui.text == "y"


@pytest.mark.parametrize(
    ("before", "after"), [("", "any key"), ("", "yes"), ("a", "ny c"), ("y", " z")]
)
async def test_writing_goes_on_letter_by_letter(tmp_path: Path, before: str, after: str):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui, draft=before)
        await ui.write(after)
        assert ui.text == before + after
        ui.approval.arm()
        await ui.settle()
        assert ui.text == before + after


async def test_a_lone_letter_in_the_middle_of_writing_stays(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui, draft="the wa")
        await ui.write("y")
        ui.approval.arm()
        await ui.settle()
        assert ui.text == "the way"


async def test_an_answer_too_early_is_no_part_of_a_draft_that_rests(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ui.send("go")
        await ui.write("my draft")
        ui.app.prompt.changed_at = float("-inf")
        await ui.asked()
        await ui.write("y")
        ui.approval.arm()
        await ui.settle()
        assert ui.text == "my draft"
        assert ui.approval.display


async def test_backspace_and_a_paste_meet_what_is_held(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        await ui.pilot.press("y", "backspace")
        ui.app.post_message(events.Paste("pasted"))
        await ui.settle()
        assert ui.text == "pasted"
        ui.app.prompt.clear()
        ui.approval.arm()
        ui.approval.postpone()
        await ui.pilot.press("y")
        ui.app.post_message(events.Paste("es"))
        await ui.settle()
        assert ui.text == "yes"
        ui.approval.arm()
        await ui.settle()
        assert "sends your message" in str(ui.approval.border_subtitle)


@pytest.mark.parametrize(
    ("key", "after"), [("backspace", "xy xyl"), ("ctrl+u", ""), ("ctrl+w", "xy ")]
)
async def test_a_draft_is_edited_while_the_question_stands(tmp_path: Path, key: str, after: str):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ui.send("go")
        await ui.write("xy xylo")
        ui.app.prompt.changed_at = float("-inf")
        await ui.asked()
        ui.approval.arm()
        await ui.pilot.press(key)
        await ui.settle()
        assert ui.text == after
        assert ui.approval.display
        assert not ui.approval.is_armed, "the question waits for a pause again"


async def test_an_edited_draft_is_a_message_and_a_cleared_one_is_not(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui, draft="xylo")
        ui.approval.arm()
        await ui.settle()
        for key in ("backspace", "n"):
            ui.app.post_message(events.Key(key, "n" if key == "n" else None))
        await ui.settle()
        assert ui.text == "xyln", "what is typed right behind the deletion is writing, too"
        ui.approval.arm()
        await ui.settle()
        assert "sends your message" in str(ui.approval.border_subtitle)
        await ui.pilot.press("ctrl+u", "y")
        await ui.settle()
        ui.approval.arm()
        await ui.settle()
        assert ui.text == ""
        assert ui.approval.display
        assert marked(ui) == ["y  Yes, once"]
        await ui.pilot.press("backspace")
        assert ui.approval.is_armed, "with nothing to delete it is no writing"


async def test_early_arrows_do_not_bring_an_old_prompt_to_be_sent(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        await ui.pilot.press("up", "enter")
        await ui.settle()
        assert ui.text == ""
        assert ui.queued == ()


@pytest.mark.thorough
async def test_enter_behind_a_message_sends_it_and_answers_nothing(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        await ui.write("use a branch")
        ui.approval.arm()
        await ui.settle()
        assert marked(ui) == []
        assert "sends your message" in str(ui.approval.border_subtitle)
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.queued == ("use a branch",)
        assert ui.approval.display
        assert not is_made(ui)
        ui.approval.arm()
        await ui.settle()
        assert marked(ui) == ["y  Yes, once"]
        await ui.pilot.press("enter")
        await ui.settle()
        assert is_made(ui)


async def asked_over_a_draft(ui: Ui) -> None:
    """Write a draft, do something else for long, and have the call asked about."""
    await ui.send("go")
    await ui.write("my draft")
    ui.app.prompt.changed_at = float("-inf")
    await ui.asked()
    ui.approval.arm()
    await ui.settle()


async def test_enter_sends_a_draft_from_before_and_answers_nothing(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await asked_over_a_draft(ui)
        assert marked(ui) == []
        assert "sends your message" in str(ui.approval.border_subtitle)
        await ui.pilot.press("enter")
        await ui.settle()
        assert not is_made(ui)
        assert ui.queued == ("my draft",)
        assert ui.text == ""


async def test_a_draft_from_before_is_not_sent_by_an_answer(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await asked_over_a_draft(ui)
        await ui.pilot.press("down")
        assert marked(ui) == ["y  Yes, once"]
        assert "sends your message" not in str(ui.approval.border_subtitle)
        await ui.pilot.press("enter")
        await ui.settle()
        assert is_made(ui)
        assert ui.text == "my draft"


async def test_a_draft_that_comes_while_the_question_is_open_is_what_enter_sends(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        ui.approval.arm()
        ui.app.prompt.put_before((Draft("back again"),))
        await ui.settle()
        ui.approval.arm()
        await ui.settle()
        assert "sends your message" in str(ui.approval.border_subtitle)
        assert marked(ui) == []


async def test_a_grave_question_over_a_draft_says_that_enter_sends_it(tmp_path: Path):
    async with running_app(tmp_path, *asks()) as ui:
        await ui.send("go")
        await ui.write("my draft")
        answer = asyncio.create_task(ui.app.controller.front.ask(replace(WAYS, is_grave=True)))
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        await ui.settle()
        screen = ui.app.screen
        assert isinstance(screen, ChoiceScreen)
        screen._quiet_since_s = float("-inf")
        keys = screen.query_one(KeysLine)
        assert "enter sends your message" in str(keys.render())
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.queued == ("my draft",)
        assert not answer.done()
        assert "enter answers" in str(keys.render())
        await ui.pilot.press("escape")
        assert await answer is None


async def test_an_early_answer_to_the_second_of_two_questions_is_dropped(tmp_path: Path):
    calls = (TOUCH, call("c2", "bash", command="touch other.txt"))
    async with running_app(tmp_path, *asks(*calls), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press("y")
        await ui.until(lambda: ui.approval.request and ui.approval.request.call_id == "c2")
        await ui.pilot.press("y")
        ui.approval.arm()
        await ui.settle()
        assert ui.approval.display
        assert not (ui.workspace / "other.txt").exists()
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.text == ""


@pytest.mark.parametrize("key", ["y", "enter"])
async def test_a_key_that_is_pressed_twice_answers_once_and_writes_nothing(
    tmp_path: Path, key: str
):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        slow_machine(ui)
        await ui.send("go")
        await ui.write("my draft")
        ui.app.prompt.changed_at = float("-inf")
        await ui.asked()
        ui.approval.arm()
        await ui.settle()
        if key == "enter":  # a draft is there: Enter answers once an answer is marked
            await ui.pilot.press("down")
        for _ in range(3):
            ui.app.post_message(events.Key(key, "y" if key == "y" else None))
        await ui.settle()
        assert is_made(ui)
        assert ui.text == "my draft"
        assert ui.sent == ["go"]


async def test_writing_that_begins_with_the_key_of_the_answer_is_whole(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        slow_machine(ui)
        await ask(ui)
        ui.approval.arm()
        await ui.settle()
        for key in "yyes":
            ui.app.post_message(events.Key(key, key))
        await ui.settle()
        assert is_made(ui)
        assert ui.text == "yes"


@pytest.mark.parametrize("ending", ["escape", "y", "enter"])
async def test_a_reason_that_is_not_sent_is_there_again_and_then_in_the_prompt(
    tmp_path: Path, ending: str
):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui, "my draft")
        ui.approval.arm()
        await ui.pilot.press("e", *"use it", "escape")
        ui.approval.arm()
        await ui.pilot.press("e")
        assert ui.app.query_one("#approval-words", LinesField).text == "use it"
        if ending == "enter":
            await ui.pilot.press("enter")
        else:
            await ui.pilot.press(*"!", "escape")
            ui.approval.arm()
            await ui.pilot.press(ending)
        await ui.settle()
        assert not ui.approval.display
        assert ui.text == ("my draft" if ending == "enter" else "use it!\n\nmy draft")


def press(ui: Ui, *keys: tuple[str, float]) -> None:
    """Press keys at these times, in seconds after the first."""
    begin = time.monotonic()
    for key, after_s in keys:
        event = events.Key(key, key if len(key) == 1 else None)
        event.time = begin + after_s
        ui.app.post_message(event)


@pytest.mark.parametrize("text", ["and", "no x", "yx", "1 x", "just do x", "keep", "kk do"])
async def test_a_word_that_begins_with_an_answer_is_text(tmp_path: Path, text: str):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S, burst_s=QUIET_S) as ui:
        await ask(ui)
        ui.approval.arm()
        press(ui, *((letter, 0.1 * at) for at, letter in enumerate(text)))
        await ui.settle()
        assert ui.text == text
        assert ui.approval.display
        assert not is_made(ui)
        ui.approval.arm()
        await ui.settle()
        assert ui.text == text


@pytest.mark.parametrize(
    ("keys", "is_done"),
    [
        ([("y", 0.0)], True),
        ([("y", 0.0), ("y", 0.1)], True),
        ([("y", 0.0), ("enter", 0.1)], True),
        ([("j", 0.0), ("y", 1.0)], True),
        ([("y", 0.0), ("x", 1.0)], True),
        ([("y", 0.0), ("backspace", 0.1)], False),
    ],
)
async def test_an_answer_alone_is_given_and_can_be_taken_back(
    tmp_path: Path, keys: list[tuple[str, float]], is_done: bool
):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S, burst_s=BURST_S) as ui:
        await ask(ui)
        ui.approval.arm()
        press(ui, *keys)
        if is_done:
            await ui.until(lambda: is_made(ui))
        await ui.settle()
        assert is_made(ui) is is_done
        assert ui.approval.display is not is_done


async def test_a_word_that_begins_with_an_answer_to_a_grave_question_is_text(tmp_path: Path):
    async with running_app(tmp_path, burst_s=QUIET_S) as ui:
        now = [0.0]
        answers: list[str | None] = []
        screen = ChoiceScreen(
            replace(WAYS, is_grave=True), EarlyKeys(ui.app.prompt), clock=lambda: now[0]
        )
        ui.app.push_screen(screen, answers.append)
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        now[0] += 1.0
        await ui.write("fnr")
        assert answers == []
        assert ui.text == "fnr"
        now[0] += 1.0
        await ui.pilot.press("n", "enter")
        await ui.settle()
        assert answers == ["no"]
        assert ui.text == "fnr"


@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
@pytest.mark.parametrize("is_pasted", [False, True])
async def test_the_line_of_a_reason_that_is_written_is_in_sight(
    tmp_path: Path, size: tuple[int, int], is_pasted: bool
):
    body = "".join(f"line {number}\n" for number in range(31))
    write = call("c1", "write", path="long.txt", content=body)
    async with running_app(tmp_path, *asks(write), size=size, approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press("e")
        written = [f"why {number}" for number in range(9)]
        if is_pasted:
            ui.app.post_message(events.Paste("\n".join(written)))
            await ui.settle()
        for number, line in enumerate(() if is_pasted else written):
            await ui.pilot.press(*(["ctrl+j"] if number else []), *line)
            await ui.settle()
            assert any(line in row for row in screen_rows(ui)), line
        assert any(written[-1] in row for row in screen_rows(ui))


async def test_ctrl_c_at_a_question_stops_the_turn_and_leaves_the_draft(tmp_path: Path):
    async with running_app(tmp_path, *asks(TOUCH), approval_quiet_s=QUIET_S) as ui:
        await ask(ui, "my draft")
        await ui.pilot.press("ctrl+c")
        await ui.until(lambda: not ui.is_running)
        assert ui.text == "my draft"


PLAN = call("c1", "plan", plan="1. Look")


@pytest.mark.parametrize("asked", [TOUCH, PLAN], ids=["change", "plan"])
async def test_a_reason_that_the_turn_was_stopped_behind_returns_to_the_prompt(
    tmp_path: Path, asked: ToolCall
):
    async with running_app(tmp_path, *asks(asked), approval_quiet_s=QUIET_S) as ui:
        if asked is PLAN:
            ui.runtime.conversation.permissions.mode = "plan"
        await ask(ui, "my draft")
        ui.approval.arm()
        await ui.pilot.press("e", *"use it")
        for key in ("enter", "escape"):
            ui.app.post_message(events.Key(key, None))
        await ui.until(lambda: not ui.is_running)
        await ui.settle()
        assert not is_made(ui)
        told = ui.results[0].text.count("use it")
        assert (told, ui.text) in [(1, "my draft"), (0, "use it\n\nmy draft")]


async def test_a_reason_is_returned_whenever_the_answer_does_not_arrive(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui, "my draft")
        ui.approval.arm()
        await ui.pilot.press("e", *"use it")
        ui.approval.query_one(LinesField).post_message(events.Key("enter", None))
        ui.app.controller.stop()
        await ui.settle()
        assert "use it" not in ui.results[0].text
        assert ui.text == "use it\n\nmy draft"


async def test_enter_sends_a_message_written_while_a_grave_question_is_open(tmp_path: Path):
    async with running_app(tmp_path, *asks()) as ui:
        await ui.send("go")
        question = replace(WAYS, is_grave=True)
        answer = asyncio.create_task(ui.app.controller.front.ask(question))
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        screen = ui.app.screen
        assert isinstance(screen, ChoiceScreen)
        now = time.monotonic()
        screen._clock = lambda: now  # each key comes right behind the one before
        await ui.write("use it")
        keys = screen.query_one(KeysLine)
        assert "enter sends your message" in str(keys.render())
        assert marked(ui) == []
        await ui.pilot.press("enter", "enter")
        await ui.settle()
        assert ui.queued == ("use it",)
        assert ui.text == ""
        assert "enter answers" in str(keys.render())
        assert not answer.done(), "the second Enter comes too soon to answer"
        await ui.pilot.press("escape")
        assert await answer is None


WHY = "Not this way:\n  use sqlite\n\nand keep the names"
LONG_WHY = "".join(f"line {number} of the log\n" for number in range(3_000)) + "that is why"


@pytest.mark.parametrize("pasted", [WHY, WHY.replace("\n", "\r\n"), LONG_WHY])
async def test_every_line_of_a_pasted_reason_reaches_the_model(tmp_path: Path, pasted: str):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press("e")
        ui.app.post_message(events.Paste(pasted))
        await ui.settle()
        assert ui.app.query_one("#approval-words", LinesField).size.height <= 6
        await ui.pilot.press("enter")
        await ui.settle()
        assert not is_made(ui)
        assert ui.results[0].text.endswith(pasted.replace("\r\n", "\n"))
        assert ui.text == ""


async def test_every_way_to_a_new_line_works_in_a_reason(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press("e")
        field = ui.app.query_one("#approval-words", LinesField)
        field.load(Draft("one\ntwo"))
        await ui.pilot.press("shift+enter", "3", "ctrl+j", "4", "backslash", "enter", "5")
        assert field.text == "one\ntwo\n3\n4\n5"
        assert ui.approval.display


async def test_a_pasted_answer_to_a_form_has_all_its_lines(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        question = TextQuestion("notes: Text", "", "", "leaves it out")
        answer = asyncio.create_task(ui.app.controller.front.ask_text(question))
        await ui.until(lambda: isinstance(ui.app.focused, LinesField))
        ui.app.post_message(events.Paste(WHY))
        await ui.until(lambda: ui.app.screen.query_one(LinesField).text)
        await ui.pilot.press("enter")
        assert await answer == WHY


async def test_lines_pasted_into_a_name_are_one_line(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        screen = LineInputScreen("Name", "", "old")
        names: list[str | None] = []
        ui.app.push_screen(screen, names.append)
        await ui.until(lambda: isinstance(ui.app.focused, LinesField))
        ui.app.post_message(events.Paste("new\nname"))
        await ui.until(lambda: "new" in ui.app.screen.query_one(LinesField).text)
        await ui.pilot.press("enter")
        await ui.settle()
        assert names == ["new name"]


async def test_a_rule_that_is_not_granted_is_no_message(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.pilot.press("r", "escape")
        ui.approval.arm()
        await ui.pilot.press("y")
        await ui.settle()
        assert ui.text == ""


async def test_in_the_normal_mode_of_vi_an_early_answer_is_no_command(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S) as ui:
        ui.app.prompt.use_modes(Settings.model_validate({"vim_mode": True}))
        await ui.send("go")
        await ui.write("my draft")
        await ui.pilot.press("escape")
        ui.app.prompt.changed_at = float("-inf")
        await ui.asked()
        await ui.pilot.press("a")
        ui.approval.arm()
        await ui.pilot.press("n")
        await ui.settle()
        modes = ui.app.prompt.area.modes
        assert modes is not None
        assert not modes.is_writing
        assert ui.text == "my draft"


async def test_a_long_answer_wraps_below_its_label(tmp_path: Path):
    tools = " && ".join(f"tool-{letter} --check" for letter in "abcdefgh")
    chained = call("c1", "bash", command=f"touch made.txt && {tools}")
    async with running_app(tmp_path, *asks(chained), size=(80, 24)) as ui:
        await ask(ui)
        await ui.settle()
        row = next(
            row for row in ui.approval.query(AnswerLine) if "rules for this" in str(row.render())
        )
        lines = str(row.render()).split("\n")
        assert row.size.height == len(lines) > 1
        assert {len(line) - len(line.lstrip()) for line in lines[1:]} == {4}


# Questions of commands


@pytest.mark.thorough
async def test_arrows_enter_digits_and_letters_answer_any_question(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        answers: list[str | None] = []
        for keys in (["enter"], ["down", "enter"], ["up", "enter"], ["3"], ["f"], ["escape"]):
            ui.app.push_screen(ChoiceScreen(WAYS, quiet_s=0.0), answers.append)
            await ui.until(lambda: ui.app.screen.query(AnswerLine))
            await ui.settle()
            assert marked(ui) == ["r  read it"]
            await ui.pilot.press(*keys)
            await ui.until(lambda: len(ui.app.screen_stack) == 1)
        assert answers == ["read", "fork", "no", "no", "fork", None]


@pytest.mark.thorough
async def test_a_second_enter_does_not_answer_what_the_first_one_asked(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        now = [0.0]
        answers: list[str | None] = []
        screen = ChoiceScreen(WAYS, clock=lambda: now[0])
        ui.app.push_screen(screen, answers.append)
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        await ui.pilot.press("enter")
        await ui.settle()
        assert answers == []
        now[0] += 1.0
        await ui.pilot.press("enter")
        await ui.settle()
        assert answers == ["read"]


async def test_an_answer_that_is_pressed_twice_writes_nothing(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        slow_machine(ui)
        asking = asyncio.create_task(ui.app.controller.front.ask(WAYS))
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        await ui.write("ff")
        await ui.settle()
        assert await asking == "fork"
        assert ui.text == ""


async def test_a_row_is_clicked(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        answers: list[bool | None] = []
        ui.app.push_screen(ChoiceScreen(loss_question("Go?", "It is lost.")), answers.append)
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        await ui.settle()
        assert marked(ui) == ["n  no"]
        await ui.pilot.click(ui.app.screen.query(AnswerLine).first())
        await ui.settle()
        assert answers == [True]


async def test_a_grave_question_leaves_no_early_answer_in_the_prompt(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        now = [0.0]
        answers: list[str | None] = []
        grave = replace(WAYS, is_grave=True)
        early = EarlyKeys(ui.app.prompt)
        screen = ChoiceScreen(grave, early, clock=lambda: now[0])
        ui.app.push_screen(screen, answers.append)
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        await ui.write("f")
        now[0] += 1.0
        await ui.write("fix")
        assert answers == ["fork"]
        assert ui.text == "ix"


async def test_a_question_that_writing_may_meet_leaves_the_prompt_in_sight(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        prompt, draft = ui.app.prompt, "words " * 15
        asking = asyncio.create_task(
            ui.app.controller.front.ask(replace(loss_question("Go?", "It is gone."), is_grave=True))
        )
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        await ui.write("a draft")
        await ui.pilot.press("backspace", "ctrl+w")
        await ui.drawn()
        assert ui.text == "a "
        assert any("›  a " in row for row in screen_rows(ui))
        panel = ui.app.screen.query_one("#choice")
        assert panel.region.bottom == prompt.region.y
        await ui.write(draft)
        await ui.drawn()
        assert prompt.region.height > 3
        assert panel.region.bottom == prompt.region.y
        await ui.pilot.press("escape")
        assert await asking is None
        assert ui.text == f"a {draft}"


async def test_writing_that_meets_a_grave_question_is_in_the_prompt(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        screen = ChoiceScreen(replace(WAYS, is_grave=True), EarlyKeys(ui.app.prompt))
        ui.show(screen)
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        await ui.write("run f")
        assert ui.app.screen is screen
        assert ui.text == "run f"


@pytest.mark.parametrize("is_grave", [True, False])
async def test_a_paste_over_a_question_is_in_the_prompt_and_no_answer(
    tmp_path: Path, is_grave: bool
):
    async with running_app(tmp_path) as ui:
        question = replace(WAYS, is_grave=is_grave)
        asking = asyncio.create_task(ui.app.controller.front.ask(question))
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        ui.app.post_message(events.Paste("f"))
        await ui.settle()
        await ui.drawn()
        assert ui.text == "f"
        await ui.pilot.press("enter")
        await ui.settle()
        assert not asking.done(), "the question waits for a pause again"
        await ui.pilot.press("escape")
        assert await asking is None
        assert ui.text == "f"


async def test_a_paste_over_a_grave_question_comes_behind_what_is_held(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        screen = ChoiceScreen(
            replace(WAYS, is_grave=True),
            EarlyKeys(ui.app.prompt),
            clock=lambda: 0.0,
            take_paste=ui.app.prompt.area.post_message,
        )
        ui.show(screen)
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        await ui.write("n")
        ui.app.post_message(events.Paste("ot"))
        await ui.settle()
        await ui.drawn()
        await ui.write("f")
        assert ui.text == "notf"


SED = "sed -i \\\n" + "".join(f"  -e 's/an_old_name_{n}/a_new_name_{n}/g' \\\n" for n in range(9))
LONG = call("c1", "bash", command=f"{SED}  made.txt")


@pytest.mark.parametrize("size", [(200, 50), (120, 40), (80, 24), (60, 10), (50, 15)])
async def test_the_answers_have_their_rows_before_a_long_command(
    tmp_path: Path, size: tuple[int, int]
):
    async with running_app(tmp_path, *asks(LONG), approval_quiet_s=QUIET_S, size=size) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.settle()
        rows = screen_text(ui)
        assert "$ sed -i" in rows
        assert "›y  Yes, once" in rows
        assert ("e  No, and say what" in rows) == (size[1] >= 24)
        await ui.pilot.press("up")
        await ui.drawn()
        assert "›e  No, and say what" in screen_text(ui)


async def test_enter_gives_no_answer_that_is_out_of_sight(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S, size=(40, 6)) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.settle()
        assert "Yes, once" not in screen_text(ui)
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.approval.display
        assert not is_made(ui)


def test_a_long_command_is_not_written_out_again_in_its_answers():
    command = LONG.arguments["command"]
    asked = replace(REQUEST, body=command, session_rule=f"bash({command})", part_rules=())
    grants = {answer.choice: answer.grants for answer in answers_to(asked)}
    assert grants["session"] == grants["project"] == "exactly this command"
    short = replace(REQUEST, body="make all", session_rule="bash(make all)")
    assert "make all" in [answer.grants for answer in answers_to(short)]


async def test_what_runs_is_named_again_once_its_own_question_is_answered(tmp_path: Path):
    async with running_app(tmp_path, held("", TOUCH), Reply(text="Done.")) as ui:
        await ui.send("go")
        ui.show_events(ToolStarted("c1", "bash", {"command": "curl example.org"}, "curl"))
        first, second = replace(REQUEST, id="first"), replace(REQUEST, id="second")
        ui.show_events(ApprovalRequested(first), ApprovalRequested(second))
        ui.show_events(ApprovalResolved("first", True))
        assert (state := ui.activity.state)
        assert activity_text(state, ui.clock()).startswith("Waiting for your answer…")
        ui.show_events(ApprovalResolved("second", True))
        assert (state := ui.activity.state)
        assert activity_text(state, ui.clock()).startswith("Running bash…")


# The rows


async def test_rows_come_from_data_and_may_change(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        answers = AnswerList()
        await ui.app.query_one("#upper").mount(answers)
        rows = [AnswerRow("", f"row {number}", "why\nnot") for number in range(1, 12)]
        answers.show(rows, 3)
        await ui.drawn()
        shown = [str(line.render()) for line in answers.query(AnswerLine) if line.display]
        assert shown[3] == "›4  row 4   why⏎not"
        assert answers.number_for("enter") == 3
        assert answers.number_for("9") == 8
        assert answers.keys == frozenset("123456789")
        answers.show([AnswerRow("y", "yes"), AnswerRow("n", "no")], 1)
        await ui.drawn()
        shown = [str(line.render()) for line in answers.query(AnswerLine) if line.display]
        assert shown == [" y  yes", "›n  no"]
        assert [answers.number_for(key) for key in ("y", "n", "1", "2", "3")] == [0, 1, 0, 1, None]


def press_and_paste(ui: Ui, key: str, text: str, *, after_s: float) -> None:
    """A key and a paste behind it, `after_s` apart, before either is handled."""
    pressed, pasted = events.Key(key, key), events.Paste(text)
    pasted.time = pressed.time + after_s
    for event in (pressed, pasted):
        ui.app.post_message(event)


@pytest.mark.parametrize("after_s", [0.0, 0.1])
async def test_a_paste_behind_an_answer_goes_into_the_prompt_and_the_answer_holds(
    tmp_path: Path, after_s: float
):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S, burst_s=BURST_S) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.settle()
        press_and_paste(ui, "y", "one\ntwo", after_s=after_s)
        is_one = after_s == 0.0  # the terminal sent the letter and the rest at once
        await ui.until(lambda: ui.text == ("yone\ntwo" if is_one else "one\ntwo"))
        await ui.settle()
        assert is_made(ui) is not is_one
        assert ui.approval.display is is_one


async def test_what_follows_the_key_for_a_reason_is_the_reason(tmp_path: Path):
    async with running_app(tmp_path, *asks(), approval_quiet_s=QUIET_S, burst_s=BURST_S) as ui:
        await ask(ui)
        ui.approval.arm()
        await ui.settle()
        press_and_paste(ui, "e", "one\ntwo", after_s=0.1)
        ui.app.post_message(events.Key("s", "s"))
        field = ui.app.query_one("#approval-words", LinesField)
        await ui.until(lambda: sorted(field.text) == sorted("one\ntwos"))
        assert ui.text == ""


async def test_a_paste_behind_an_answer_goes_into_the_field_that_the_answer_opens(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        front = ui.app.controller.front

        async def fill() -> str | None:
            await front.ask(WAYS)
            return await front.ask_text(TextQuestion("notes: Text", "", "", "leaves it out"))

        answer = asyncio.create_task(fill())
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        press_and_paste(ui, "r", WHY, after_s=0.1)
        await ui.until(lambda: [f for f in ui.app.screen.query(LinesField) if f.text])
        await ui.pilot.press("enter")
        assert await answer == WHY
        assert ui.text == ""


@pytest.mark.parametrize("is_grave", [False, True])
async def test_a_paste_that_answers_nothing_is_in_the_prompt_and_the_screen_says_so(
    tmp_path: Path, is_grave: bool
):
    async with running_app(tmp_path) as ui:
        question = replace(WAYS, is_grave=is_grave)
        answer = asyncio.create_task(ui.app.controller.front.ask(question))
        await ui.until(lambda: ui.app.screen.query(AnswerLine))
        ui.app.post_message(events.Paste("read\nit"))
        await ui.until(lambda: ui.text == "read\nit")
        assert [n.message for n in ui.app._notifications] == ["What you pasted is in the prompt."]
        await ui.pilot.press("escape")
        assert await answer is None


async def test_a_page_says_that_it_takes_no_paste(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/help")
        await ui.until(lambda: len(ui.app.screen_stack) > 1)
        ui.app.set_focus(None)
        ui.app.post_message(events.Paste("one\ntwo"))
        await ui.until(lambda: [n for n in ui.app._notifications if "pasted" in n.message])
        assert ui.text == ""
