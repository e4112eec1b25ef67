"""An empty chat: what it offers, and how one takes it."""

import os
from datetime import UTC, datetime
from pathlib import Path

from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import UserMessage
from agent_tui.sessions.entries import Header, MessageEntry
from agent_tui.sessions.store import SessionStore
from agent_tui.ui.screens.modal import PageScreen
from agent_tui.ui.transcript.blocks import WelcomeBlock
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, answer, running_app

QUESTION = "What does this project do?"


def welcome(ui: Ui) -> WelcomeBlock:
    first = ui.blocks[0]
    assert isinstance(first, WelcomeBlock)
    return first


async def click_on(ui: Ui, text: str) -> None:
    rows = ui.drawn_chat.splitlines()
    y = next(number for number, row in enumerate(rows) if text in row)
    await ui.pilot.click("Transcript", offset=(rows[y].index(text) + 1, y))
    await ui.settle()


def kept_session(stage: Stage, number: int, said: str) -> Path:
    header = Header(id=f"{number:08}-0000", cwd=str(stage.workspace))
    log = SessionStore(stage.sessions).create(header)
    log.append(MessageEntry(message=UserMessage(content=said)))
    log.append(MessageEntry(message=answer("Done.")))
    log.close()
    assert log.path is not None
    seconds = datetime(2026, 3, number, tzinfo=UTC).timestamp()
    os.utime(log.path, (seconds, seconds))
    return log.path


async def test_enter_in_the_empty_prompt_takes_what_is_offered_and_another_sends(tmp_path: Path):
    async with running_app(tmp_path, Reply(text="A parser.")) as ui:
        assert (welcome(ui).hints[0].text, welcome(ui).hints[0].key) == (QUESTION, "enter")
        await ui.pilot.press("enter")
        assert ui.text == QUESTION
        assert ui.sent == []
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.sent == [QUESTION]
        await ui.pilot.press("enter", "tab")
        assert ui.text == ""


async def test_tab_takes_it_to_be_changed(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.pilot.press("tab")
        await ui.write("!")
        assert ui.text == f"{QUESTION}!"


async def test_a_click_takes_words_and_runs_commands(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        (ui.workspace / "notes.md").write_text("x")
        await click_on(ui, "What does")
        assert ui.text == QUESTION
        await ui.pilot.press("ctrl+c")
        await click_on(ui, "@ and")
        await ui.until(lambda: ui.app.prompt.menu.is_open)
        await ui.pilot.press("escape", "ctrl+c")
        await click_on(ui, "/help")
        assert isinstance(ui.app.screen, PageScreen)


async def test_the_newest_sessions_of_the_folder_are_resumed_by_a_click(tmp_path: Path):
    stage = Stage(tmp_path)
    paths = [kept_session(stage, n, f"Task number {n}") for n in range(1, 6)]
    async with running_app(tmp_path, stage=stage) as ui:
        rows = welcome(ui).sessions
        assert [row.text for row in rows] == ["Task number 5", "Task number 4", "Task number 3"]
        assert rows[0].about == "2026-03-05 · 2 messages"
        await click_on(ui, "Task number 4")
        assert ui.path == paths[3]
        await ui.pilot.press("enter")
        assert ui.text == "", "nothing is offered in a conversation"


async def test_a_greeting_stands_in_the_middle_until_something_is_said(tmp_path: Path):
    async with running_app(tmp_path, Reply(text="Hi."), size=(100, 40)) as ui:
        rows = ui.drawn_chat.splitlines()
        assert 9 <= next(y for y, row in enumerate(rows) if "agent-tui" in row) <= 14
        await ui.send("hello")
        assert ui.drawn_chat.startswith("\n ◆ agent-tui")
        assert QUESTION not in ui.drawn_chat
        await ui.send("/new")
        assert QUESTION in ui.drawn_chat
        assert "hello" in ui.drawn_chat, "what was left can be resumed"
