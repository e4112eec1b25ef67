"""What holds for every screen above the chat."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.app import ScreenStackError
from textual.css.query import NoMatches
from textual.events import Key
from textual.worker import WorkerFailed, WorkerState

from agent_tui.commands.core.front import Choice, Question
from agent_tui.ui.questions import EarlyKeys
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
        assert put_off
        for move_or_measure in put_off:
            move_or_measure()
        assert answers == [1]


@pytest.mark.parametrize("exits", [False, True])
@pytest.mark.parametrize("steps", range(3))
async def test_a_screen_that_opens_as_the_program_ends_ends_quietly(
    tmp_path: Path, steps: int, exits: bool
):
    question = Question("Which?", (), (Choice(1, "read", "r"), Choice(2, "fork", "f")))
    async with running_app(tmp_path) as ui:
        ui.app.push_screen(ChoiceScreen(question, EarlyKeys(ui.app.prompt)))
        for _ in range(steps):
            await asyncio.sleep(0)
        if exits:
            ui.app.exit()
    assert ui.app._exception is None


@pytest.mark.parametrize("error", [NoMatches, ScreenStackError])
async def test_a_worker_that_fills_a_screen_as_the_program_ends_ends_quietly(
    tmp_path: Path, error: type[Exception]
):
    async with running_app(tmp_path) as ui:

        async def fill() -> None:
            ui.app.exit()
            raise error

        worker = ui.app.run_worker(fill())
        await ui.until(lambda: worker.is_finished)
    assert worker.state is WorkerState.ERROR
    assert ui.app._exception is None


@pytest.mark.parametrize("in_worker", [False, True])
async def test_a_query_that_finds_nothing_while_the_program_runs_is_an_error(
    tmp_path: Path, in_worker: bool
):
    async def query_too_much() -> None:
        async def query() -> None:
            ui.app.query_one("#no-such-widget")

        async with running_app(tmp_path) as ui:
            if in_worker:
                ui.app.run_worker(query())
            else:
                ui.app.call_later(query)
            await ui.until(lambda: ui.app._exception)

    with pytest.raises(WorkerFailed if in_worker else NoMatches, match="no-such-widget"):
        await query_too_much()


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
