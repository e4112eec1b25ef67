"""The model's questions on the screen: keys, mouse, sizes, and what is written."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.events import MouseScrollUp, Paste
from textual.widgets import Static

from agent_tui.drafts.draft import Draft
from agent_tui.features.ask_user.tool import AskUserArguments, make_form
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import JsonObject, ToolResultMessage
from agent_tui.sessions.entries import MessageEntry
from agent_tui.ui.lines_field import LinesField
from agent_tui.ui.questions import AnswerLine, AnswerList
from agent_tui.ui.screens.form import FormScreen
from agent_tui.ui.screens.modal import PageScreen
from tests.ui.app_support import Ui, held, running_app
from tests.ui.prompt.test_draft_keeper import draft_on_disk

DATABASE: JsonObject = {
    "question": "Which database?",
    "answers": ["SQLite", "Postgres", "Redis"],
    "recommended": "Postgres",
}
TESTS: JsonObject = {"question": "Which tests?", "answers": ["unit", "end to end"], "several": True}
NAMES: JsonObject = {"question": "Which name?", "answers": ["cache", "store"]}
LONG: JsonObject = {
    "question": "Why is this one so long that it does not fit? " * 10,
    "answers": [f"{word} and a long text about it " * 6 for word in ("one", "two", "three")],
}


@asynccontextmanager
async def asked(
    root: Path, *questions: JsonObject, said: str = "I must know.", **more: Any
) -> AsyncGenerator[Ui]:
    """The app with a form of `questions` open, of a model that `said` something first."""
    ask = call("c1", "ask_user", questions=list(questions))
    reply = Reply(text=said, tool_calls=(ask,))
    more = {"approval_quiet_s": 0.0, **more}
    async with running_app(root, reply, Reply(text="Thanks."), Reply(text="Yes."), **more) as ui:
        await ui.write("Build it.")
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, FormScreen), "no form")
        await ui.pilot.pause()
        yield ui


WAYS = "\n\n".join(f"Way {number} has its price." for number in range(1, 31))


async def test_what_the_model_said_before_is_above_its_question_and_scrolls(tmp_path: Path):
    async with asked(tmp_path, DATABASE, said=WAYS) as ui:
        await ui.measured()
        below = form(ui).query_one("#form").region.y
        assert ui.chat.region.bottom < below
        assert "Way 30 has its price." in ui.drawn_chat
        await ui.pilot.press("pageup")
        await ui.measured()
        assert "Way 30 has its price." not in ui.drawn_chat
        for _ in range(40):
            form(ui).post_message(MouseScrollUp(None, 1, 1, 0, 0, 0, False, False, False))
        await ui.measured()
        assert "◆ agent-tui" in ui.drawn_chat, "the beginning of the chat"
        assert marked(ui) == 1
        await ui.pilot.press("enter")
        await result(ui)
        await ui.settle()
        assert ui.app.query_one("#upper").styles.padding.bottom == 0


def form(ui: Ui) -> FormScreen:
    assert isinstance(ui.app.screen, FormScreen)
    return ui.app.screen


def question(ui: Ui) -> str:
    return str(form(ui).query_one("#form-question", Static).render())


def title(ui: Ui) -> str:
    return str(form(ui).query_one("#page-title", Static).render())


def field(ui: Ui) -> LinesField:
    return next(each for each in form(ui).query(LinesField) if each.parent and each.parent.display)


def marked(ui: Ui) -> int | None:
    return form(ui).query_one(AnswerList).marked


async def result(ui: Ui) -> ToolResultMessage:
    """The result of the call, once the turn has ended."""
    await ui.until(lambda: not ui.is_running, "the turn goes on")
    messages = [
        e.message for e in ui.runtime.conversation.log.entries if isinstance(e, MessageEntry)
    ]
    return next(one for one in messages if isinstance(one, ToolResultMessage))


async def said(ui: Ui) -> str:
    return (await result(ui)).tool_details.user_words


async def test_enter_gives_the_recommended_answer(tmp_path: Path):
    async with asked(tmp_path, DATABASE) as ui:
        assert (question(ui), marked(ui)) == ("Which database?", 1)
        await ui.pilot.press("enter")
        assert await said(ui) == "Which database? -> Postgres"


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["3"], "Redis"),
        (["up", "enter"], "SQLite"),
        (["down", "space"], "Redis"),
        ([*"my own", "enter"], '"my own"'),
        (["down", "down", *"x y", "enter"], '"x y"'),
        (["x", "up", "1"], 'SQLite, "x"'),
        (["tab", *"z", "enter"], '"z"'),
        (["a", "backspace", "up", "enter"], "Redis"),
    ],
)
@pytest.mark.thorough
async def test_keys_choose_or_write(tmp_path: Path, keys: list[str], answer: str):
    async with asked(tmp_path, DATABASE) as ui:
        await ui.pilot.press(*("space" if key == " " else key for key in keys))
        assert await said(ui) == f"Which database? -> {answer}"


@pytest.mark.thorough
async def test_several_questions_are_answered_on_one_screen_and_reviewed(tmp_path: Path):
    async with asked(tmp_path, DATABASE, TESTS, NAMES) as ui:
        assert title(ui) == "Question 1 of 3"
        await ui.pilot.press("1")
        assert title(ui) == "Question 2 of 3"
        await ui.pilot.press("space", "2")
        assert title(ui) == "Question 2 of 3"
        await ui.pilot.press("enter")
        await ui.write("vault")
        await ui.pilot.press("enter")
        assert title(ui) == "Your answers"
        await ui.pilot.press("1")  # back to the first one
        assert (title(ui), marked(ui)) == ("Question 1 of 3", 0)
        await ui.pilot.press("3", "tab", "tab", "enter")
        told = "Which database? -> Redis\nWhich tests? -> unit, end to end\nWhich name? -> "
        assert await said(ui) == f'{told}"vault"'


@pytest.mark.thorough
async def test_a_question_may_be_skipped_but_not_all(tmp_path: Path):
    async with asked(tmp_path, DATABASE, NAMES) as ui:
        await ui.pilot.press("tab", "tab", "enter")
        assert title(ui) == "Your answers"
        assert form(ui).query_one("#form-problem").display
        await ui.pilot.press("2", "1", "enter")
        assert await said(ui) == "Which database? -> not answered\nWhich name? -> cache"


@pytest.mark.thorough
async def test_of_several_answers_each_can_be_taken_back(tmp_path: Path):
    async with asked(tmp_path, TESTS) as ui:
        await ui.pilot.press("1", "2", "1", "enter", "enter")
        assert await said(ui) == "Which tests? -> end to end"


async def test_esc_leaves_the_question_and_stops_the_turn(tmp_path: Path):
    async with asked(tmp_path, DATABASE, TESTS) as ui:
        await ui.write("half a thought")
        await ui.pilot.press("tab", "1", "escape")
        told = await result(ui)
        assert (told.tool_details.summary, told.tool_details.user_words) == ("not answered", "")
        assert len(ui.stage.model.requests) == 1
        assert ui.text == "half a thought"


@pytest.mark.thorough
async def test_a_stopped_turn_keeps_what_was_written(tmp_path: Path):
    async with asked(tmp_path, DATABASE, NAMES) as ui:
        await ui.write("one")
        await ui.pilot.press("tab")
        await ui.write("two")
        await ui.pilot.press("ctrl+c")
        assert (await result(ui)).is_error
        assert not isinstance(ui.app.screen, FormScreen)
        assert sorted(ui.text.split()) == ["one", "two"]


@pytest.mark.thorough
async def test_what_is_written_is_kept_on_the_disk(tmp_path: Path):
    async with asked(tmp_path, DATABASE) as ui:
        await ui.write("half")
        await ui.until(lambda: draft_on_disk(ui) == Draft("half"))


@pytest.mark.thorough
async def test_a_paste_is_written(tmp_path: Path):
    async with asked(tmp_path, DATABASE) as ui:
        form(ui).post_message(Paste("one\ntwo"))
        await ui.until(lambda: field(ui).text == "one\ntwo")
        await ui.pilot.press("enter")
        assert await said(ui) == 'Which database? -> "one\ntwo"'


@pytest.mark.thorough
async def test_a_text_that_is_too_long_is_not_sent(tmp_path: Path):
    async with asked(tmp_path, DATABASE) as ui:
        field(ui).load(Draft("x" * 4_001))
        await ui.pilot.press("tab", "enter")
        shown = form(ui).query_one("#form-problem", Static)
        assert str(shown.render()) == "At most 4,000 characters."


@pytest.mark.thorough
async def test_clicks_choose_and_write(tmp_path: Path):
    async with asked(tmp_path, TESTS, DATABASE) as ui:
        await ui.pilot.click(list(form(ui).query(AnswerLine))[1])
        await ui.pilot.click(field(ui))
        await ui.write("more")
        await ui.pilot.press("enter")
        await ui.pilot.click(form(ui).query(AnswerLine).first())
        assert title(ui) == "Your answers"
        await ui.pilot.click(list(form(ui).query(AnswerLine))[2])
        assert await said(ui) == 'Which tests? -> end to end, "more"\nWhich database? -> SQLite'


@pytest.mark.thorough
@pytest.mark.parametrize("size", [(60, 24), (40, 14), (200, 60)])
async def test_long_texts_wrap_and_every_answer_can_be_reached(
    tmp_path: Path, size: tuple[int, int]
):
    async with asked(tmp_path, LONG, size=size) as ui:
        screen = form(ui)
        for number in range(3):
            await ui.pilot.press(*(["down"] if number else []))
            await ui.pilot.pause()
            line = list(screen.query(AnswerLine))[number]
            scroll = screen.query_one("#form-scroll")
            assert marked(ui) == number
            assert scroll.region.overlaps(line.region)
        assert screen.query_one("#form").region.right <= size[0]
        assert field(ui).region.bottom <= size[1]
        await ui.pilot.resize_terminal(100, 30)
        assert marked(ui) == 2
        await ui.pilot.press("enter")
        assert "three and a long text" in await said(ui)


@pytest.mark.thorough
async def test_the_question_waits_until_the_page_that_is_read_is_closed(tmp_path: Path):
    ask = call("c1", "ask_user", questions=[DATABASE])
    replies = (Reply(tool_calls=(ask,)), Reply(text="Thanks."))
    async with running_app(tmp_path, *replies, approval_quiet_s=0.0) as ui:
        await ui.submit("/keys")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        ui.app.controller.dispatch("Build it.")
        await ui.until(lambda: bool(ui.app._notifications))  # pyright: ignore[reportPrivateUsage]
        assert isinstance(ui.app.screen, PageScreen)
        await ui.pilot.press("escape")
        await ui.until(lambda: isinstance(ui.app.screen, FormScreen))


@pytest.mark.thorough
async def test_the_question_waits_for_a_pause_in_typing(tmp_path: Path):
    ask = call("c1", "ask_user", questions=[DATABASE])
    async with running_app(
        tmp_path, held("", ask), Reply(text="Thanks."), approval_quiet_s=0.3
    ) as ui:
        await ui.send("Build it.")
        await ui.write("next I")
        ui.let_go()
        await ui.until(lambda: isinstance(ui.app.screen, FormScreen))
        assert time.monotonic() - ui.app.prompt.changed_at >= 0.3
        await ui.pilot.press("escape")
        await result(ui)
        assert ui.text == "next I"


@pytest.mark.thorough
async def test_a_key_that_was_meant_for_the_prompt_gives_no_answer(tmp_path: Path):
    now = [0.0]
    fields = make_form(AskUserArguments.model_validate({"questions": [DATABASE]})).fields
    async with running_app(tmp_path) as ui:
        screen = FormScreen(fields, lambda _drafts: None, quiet_s=1.0, clock=lambda: now[0])
        ui.show(screen)
        await ui.until(lambda: screen.is_current)
        await ui.pilot.press("1", "enter", "space")
        assert screen.is_current
        now[0] = 1.0
        await ui.pilot.press("1")
        await ui.until(lambda: not screen.is_current)


@pytest.mark.thorough
async def test_the_answer_is_in_the_chat_also_after_a_resume(tmp_path: Path):
    async with asked(tmp_path, DATABASE) as ui:
        await ui.pilot.press("1")
        await said(ui)
        before = ui.chat.to_text()
        assert "Which database?" in before
        assert "SQLite" in before
        ui.redraw()
        await ui.pilot.pause()
        assert "SQLite" in ui.chat.to_text()
        assert "Which database?" in ui.chat.to_text()
