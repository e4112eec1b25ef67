"""What is written and not sent is on disk within a second, and back at the next start."""

import asyncio
import errno
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from agent_tui.commands.core.forms import form_filler
from agent_tui.commands.core.front import TextQuestion
from agent_tui.drafts.draft import Draft
from agent_tui.drafts.kept_drafts import KeptDraft, draft_file, take_left_draft
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import JsonObject
from agent_tui.tools.form import CANCELLED, DECLINED, Elicitation, FormField
from agent_tui.ui.lines_field import LinesField
from agent_tui.ui.prompt import draft_keeper
from agent_tui.ui.prompt.draft_keeper import RESTORED, DraftKeeper
from agent_tui.ui.screens.choice import ChoiceScreen, LineInputScreen
from tests.support.runtime import Stage
from tests.support.session_values import user
from tests.ui.app_support import Ui, asking, held, running_app, said


async def kept(ui: Ui) -> Draft | None:
    """What a start after a kill would find now."""
    assert ui.app.loaded is not None
    await ui.app.loaded.drafts.save()
    return draft_on_disk(ui)


def draft_on_disk(ui: Ui) -> Draft | None:
    path = draft_file(ui.path)
    if not path.exists():
        return None
    copy = path.with_name("copy.draft")
    copy.write_bytes(path.read_bytes())
    left = take_left_draft(copy)
    copy.unlink()
    return left[0] if left else None


def leave(session: Path, draft: Draft) -> None:
    left = KeptDraft()
    left.write(draft, session)
    left.release()


async def test_a_change_is_written_without_being_told(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.write("half a thou")
        await ui.until(lambda: draft_on_disk(ui) == Draft("half a thou"))


async def test_a_sent_and_a_cleared_draft_are_removed(tmp_path: Path):
    async with running_app(tmp_path, Reply(text="Done.")) as ui:
        await ui.write("go")
        assert await kept(ui) == Draft("go")
        await ui.pilot.press("enter")
        await ui.settle()
        await ui.until(lambda: not draft_file(ui.path).exists())
        await ui.write("no")
        assert await kept(ui) == Draft("no")
        await ui.pilot.press("ctrl+c")
        await ui.until(lambda: not draft_file(ui.path).exists())


async def test_messages_that_wait_are_kept_until_they_are_delivered(tmp_path: Path):
    async with running_app(tmp_path, held("One."), Reply(text="Two.")) as ui:
        await ui.send("go")
        await ui.send("also this")
        await ui.write("and")
        assert ui.queued == ("also this",)
        assert await kept(ui) == Draft("also this\n\nand")
        await ui.finish()
        assert ui.sent == ["go", "also this"]
        assert await kept(ui) == Draft("and")


async def test_what_is_sent_queued_or_cleared_is_saved_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(draft_keeper, "SAVE_S", 3_600.0)
    async with running_app(tmp_path, held("One."), Reply(text="Two.")) as ui:
        await ui.write("go")
        assert await kept(ui) == Draft("go")
        await ui.pilot.press("enter")
        await ui.until(lambda: not draft_file(ui.path).exists())
        await ui.send("also this")
        await ui.until(lambda: draft_on_disk(ui) == Draft("also this"))
        await ui.write("and")
        await ui.finish()
        await ui.until(lambda: draft_on_disk(ui) == Draft("and"))
        await ui.pilot.press("ctrl+c")
        await ui.until(lambda: not draft_file(ui.path).exists())


@pytest.mark.parametrize("is_taken", [True, False])
async def test_a_sent_message_is_kept_until_the_session_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken: bool
):
    async with running_app(tmp_path, Reply(text="Done.")) as ui:
        submit, go_on = ui.runtime.submit, asyncio.Event()

        async def submit_slowly(*given: Any) -> AsyncGenerator[AgentEvent]:
            await go_on.wait()
            if not is_taken:
                raise AgentTuiError("Not now.")
            async with aclosing(submit(*given)) as events:
                async for event in events:
                    if not draft_file(ui.path).exists():
                        assert ui.sent == ["go"]
                    yield event

        monkeypatch.setattr(ui.runtime, "submit", submit_slowly)
        await ui.write("go")
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.is_running and not ui.text)
        assert await kept(ui) == Draft("go")
        go_on.set()
        await ui.settle()
        if is_taken:
            await ui.until(lambda: not draft_file(ui.path).exists())
        else:
            assert ui.text == "go"
            assert await kept(ui) == Draft("go")


async def test_a_new_session_restores_the_draft_left_in_its_folder_once(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = asking(stage)
    path = runtime.conversation.log.path
    assert path is not None
    pasted = Draft("look at [paste #1 +99 lines]", {1: "line\n" * 100})
    leave(path.with_name("killed.jsonl"), pasted)
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.until(lambda: ui.text == pasted.text)
        await ui.until(lambda: RESTORED in ui.notices)
        assert ui.app.prompt.draft == pasted
        assert not draft_file(path.with_name("killed.jsonl")).exists()
        assert draft_on_disk(ui) == pasted


async def test_an_opened_session_restores_its_own_draft_above_what_is_written(tmp_path: Path):
    stage = Stage(tmp_path)
    earlier = said(asking(stage), user("before"))
    path = earlier.conversation.log.path
    assert path is not None
    await earlier.aclose()
    async with running_app(tmp_path, stage=stage) as ui:
        leave(path, Draft("half a thou"))
        await ui.send(f"/resume {path}")
        await ui.until(lambda: RESTORED in ui.notices)
        assert ui.path == path
        assert ui.text == "half a thou"
        assert draft_on_disk(ui) == Draft("half a thou")


async def test_what_is_written_at_the_end_is_kept(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.write("not sent")
    assert take_left_draft(ui.path) == (Draft("not sent"), draft_file(ui.path))


async def test_a_full_disk_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def write(_kept: KeptDraft, _draft: Draft, _session: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(KeptDraft, "write", write)
    async with running_app(tmp_path) as ui:
        await ui.write("one")
        assert await kept(ui) is None
        await ui.write(" two")
        assert await kept(ui) is None
        told = "Cannot keep the unsent draft on disk: No space left on device."
        assert ui.notices == [told]


async def test_without_a_session_nothing_is_kept(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.write("one")
        keeper = DraftKeeper(ui.app.prompt, tuple, lambda: None, ui.notices.append)
        await keeper.save()
        await keeper.restore()
        assert ui.text == "one"
        assert ui.notices == []


ASKS = call("c1", "bash", command="touch made.txt")


async def test_a_reason_is_kept_until_it_is_sent(tmp_path: Path):
    script = (held("", ASKS), held("Well."))
    async with running_app(tmp_path, *script, approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        await ui.write("my draft")
        ui.app.prompt.changed_at = float("-inf")
        await ui.asked()
        ui.approval.arm()
        await ui.pilot.press("e", *"use x")
        await ui.until(lambda: draft_on_disk(ui) == Draft("use x\n\nmy draft"))
        await ui.pilot.press("escape")
        assert await kept(ui) == Draft("use x\n\nmy draft"), "it is still there behind the answers"
        ui.approval.arm()
        await ui.pilot.press("e", "enter")
        await ui.until(lambda: draft_on_disk(ui) == Draft("my draft"))
        assert ui.results[0].text.endswith("use x")


async def test_a_half_written_reason_is_kept_when_the_program_ends(tmp_path: Path):
    script = (held("", ASKS), held("Well."))
    async with running_app(tmp_path, *script, approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        await ui.asked()
        ui.approval.arm()
        await ui.pilot.press("e", *"use x")
    assert draft_on_disk(ui) == Draft("use x")


async def test_an_answer_to_a_form_is_kept_until_it_is_sent(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        question = TextQuestion("notes: Text", "", "old", "keeps it")
        answer = asyncio.create_task(ui.app.controller.front.ask_text(question))
        await ui.until(lambda: isinstance(ui.app.focused, LinesField))
        assert await kept(ui) is None
        await ui.write("the lot")
        await ui.until(lambda: draft_on_disk(ui) == Draft("the lot"))
        await ui.pilot.press("enter")
        assert await answer == "the lot"
        await ui.until(lambda: not draft_file(ui.path).exists())


async def test_an_answer_to_a_form_is_kept_when_the_program_ends(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        question = TextQuestion("notes: Text", "", "", "leaves it out")
        answer = asyncio.create_task(ui.app.controller.front.ask_text(question))
        await ui.until(lambda: isinstance(ui.app.focused, LinesField))
        await ui.write("half")
    answer.cancel()
    assert draft_on_disk(ui) == Draft("half")


async def test_an_answer_to_a_form_that_is_taken_away_is_in_the_prompt(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        question = TextQuestion("notes: Text", "", "", "leaves it out")
        answer = asyncio.create_task(ui.app.controller.front.ask_text(question))
        await ui.until(lambda: isinstance(ui.app.focused, LinesField))
        await ui.write("half")
        answer.cancel()
        await ui.until(lambda: ui.text == "half")
        assert await kept(ui) == Draft("half")


async def test_a_name_that_is_not_given_is_no_draft(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        ui.show(LineInputScreen("Name", "", "old"))
        await ui.until(lambda: isinstance(ui.app.focused, LinesField))
        await ui.write("new")
        assert await kept(ui) is None


FORM = Elicitation(
    "notes",
    "What is wrong?",
    (
        FormField("title", "Title", "text", is_required=True),
        FormField("urgent", "Urgent", "yes or no"),
        FormField("body", "Body", "text"),
    ),
)


def _field_title(ui: Ui) -> str:
    """The question whose field takes the keys; empty if none does."""
    has_field = isinstance(ui.app.focused, LinesField)
    return str(ui.app.screen.query_one("#page-title", Static).render()) if has_field else ""


async def _fill_until_body(ui: Ui) -> "asyncio.Future[JsonObject]":
    """Answer the first two fields, and write half of the last one."""
    filling = asyncio.ensure_future(form_filler(ui.app.controller.front)(FORM))
    await _answer_with_letter(ui, "a")
    for title, written in (("Title", "It is slow"), ("Urgent", "yes"), ("Body", "half")):
        await ui.until(lambda title=title: title in _field_title(ui))
        await ui.write(written)
        if written != "half":
            await ui.pilot.press("enter")
    return filling


async def _answer_with_letter(ui: Ui, letter: str) -> None:
    await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
    screen = ui.app.screen
    assert isinstance(screen, ChoiceScreen)
    screen._quiet_s = 0.0
    await ui.pilot.press(letter)


GIVEN = "Title: It is slow\nUrgent: yes"


async def test_answers_to_a_form_are_kept_while_the_next_one_is_written(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        filling = await _fill_until_body(ui)
        await ui.until(lambda: draft_on_disk(ui) == Draft(f"{GIVEN}\n\nhalf"))
        await ui.pilot.press("enter")
        await _answer_with_letter(ui, "s")
        assert (await filling)["action"] == "accept"
        await ui.until(lambda: not draft_file(ui.path).exists())
        assert ui.text == ""


@pytest.mark.parametrize("ending", ["escape", "cancel"])
async def test_answers_to_a_form_that_is_left_return_to_the_prompt(tmp_path: Path, ending: str):
    async with running_app(tmp_path) as ui:
        filling = await _fill_until_body(ui)
        if ending == "escape":
            await ui.pilot.press("escape")
            assert await filling == CANCELLED
        else:
            filling.cancel()
        await ui.until(lambda: ui.text == f"{GIVEN}\n\nhalf")
        assert await kept(ui) == Draft(f"{GIVEN}\n\nhalf")


async def test_a_form_is_reviewed_in_the_words_that_were_typed(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        filling = await _fill_until_body(ui)
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        screen = ui.app.screen
        assert isinstance(screen, ChoiceScreen)
        assert screen.question.facts[1] == "urgent: yes"
        await _answer_with_letter(ui, "d")
        assert await filling == DECLINED
        await ui.until(lambda: ui.text == f"{GIVEN}\nBody: half")
