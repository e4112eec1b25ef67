"""What holds for every screen above the chat."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Key

from agent_tui.commands.core.front import Choice, Question
from agent_tui.ui.questions import AnswerList, EarlyKeys
from agent_tui.ui.screens.choice import ChoiceScreen
from tests.ui.app_support import running_app


async def test_keys_typed_on_after_an_answer_close_nothing_else(tmp_path: Path):
    question = Question("Which?", (), (Choice(1, "read", "r"), Choice(2, "fork", "f")))
    async with running_app(tmp_path) as ui:
        answers: list[int | None] = []
        ui.app.push_screen(ChoiceScreen(question), answers.append)
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        screen = ui.app.screen
        for key in "rff":
            screen.post_message(Key(key, key))
        await ui.until(lambda: answers)
        await ui.settle()
        assert answers == [1]
        assert len(ui.app.screen_stack) == 1
        assert ui.app.return_value is None


async def test_what_was_to_be_done_once_drawn_is_not_done_when_the_screen_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    question = Question("Which?", (), (Choice(1, "read", "r"), Choice(2, "fork", "f")))
    async with running_app(tmp_path) as ui:
        answers: list[int | None] = []
        screen = ChoiceScreen(question, EarlyKeys(ui.app.prompt))
        ui.app.push_screen(screen, answers.append)
        await ui.until(lambda: screen.query("#choice"))
        put_off: list[Callable[[], None]] = []
        monkeypatch.setattr(screen, "call_after_refresh", put_off.append)
        screen.on_resize()
        screen.dismiss(1)
        await ui.until(lambda: not screen.query("#choice"))
        (move_above_prompt,) = put_off
        move_above_prompt()
        assert answers == [1]


async def test_a_screen_that_is_removed_while_it_opens_ends_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    composed = ChoiceScreen.compose

    def compose_while_the_program_ends(screen: ChoiceScreen[int]) -> ComposeResult:
        yield from composed(screen)
        screen._pruning = True

    monkeypatch.setattr(ChoiceScreen, "compose", compose_while_the_program_ends)
    question = Question("Which?", (), (Choice(1, "read", "r"), Choice(2, "fork", "f")))
    async with running_app(tmp_path) as ui:
        screen = ChoiceScreen(question, EarlyKeys(ui.app.prompt))
        await ui.app.push_screen(screen)
        await ui.settle()
        assert not screen.children


async def test_a_screen_whose_widgets_stay_empty_as_the_program_ends_ends_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    question = Question("Which?", (), (Choice(1, "read", "r"), Choice(2, "fork", "f")))
    async with running_app(tmp_path) as ui:

        def end_the_program(_container: Vertical) -> ComposeResult:
            ui.app._exit = True
            yield from ()

        monkeypatch.setattr(Vertical, "compose", end_the_program)
        screen = ChoiceScreen(question, EarlyKeys(ui.app.prompt))
        mounting = ui.app.push_screen(screen)
        await ui.until(lambda: ui.app._exit and screen.is_mounted)
        ui.app._exit = False
        await mounting
        assert screen.children
        assert not screen.query(AnswerList)


async def test_a_question_whose_task_is_cancelled_as_the_program_ends_closes_nothing(
    tmp_path: Path,
):
    question = Question("Which?", (), (Choice(1, "read", "r"), Choice(2, "fork", "f")))
    async with running_app(tmp_path) as ui:
        asking = asyncio.ensure_future(ui.app.window.ask(ChoiceScreen(question)))
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        stack = ui.app._screen_stack
        chat = stack.pop(0)  # the program's end closes all screens that it knows
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert len(stack) == 1
        stack.insert(0, chat)
