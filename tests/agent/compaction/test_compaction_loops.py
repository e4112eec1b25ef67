"""A turn in which nothing but compactions happens ends; work in a small window does not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.errors import IN_CHAT
from agent_tui.events import AgentEvent, CompactionFinished, TurnFinished
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import ToolCall
from agent_tui.providers.base import ModelRequest
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind, only

WINDOW = 10_000
MOST = 300


class Worker(ScriptedProvider):
    """A model whose call number n is `makes(n)`; it is done when that is None.

    Attributes:
        turns: How many requests of turns it had.
        sent_chars: How much text they held in all.
    """

    def __init__(self, makes: Callable[[int], ToolCall | None]) -> None:
        super().__init__(self._reply)
        self._makes = makes
        self.turns = 0
        self.sent_chars = 0

    def _reply(self, request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(text=GOOD_SUMMARY)
        self.sent_chars += len(str(request.messages))
        self.turns += 1
        made = self._makes(self.turns - 1) if self.turns <= MOST else None
        return Reply(text="Done.") if made is None else Reply(tool_calls=(made,))


def _fill(workspace: Path) -> None:
    for name in ("a.py", "b.py"):
        rows = (f"{name}: value {number} of the table\n" for number in range(3_000))
        (workspace / name).write_text("".join(rows))


async def _work(
    stage: Stage, makes: Callable[[int], ToolCall | None], text: str = "go"
) -> tuple[Worker, list[AgentEvent]]:
    _fill(stage.workspace)
    worker = Worker(makes)
    runtime = stage.runtime(worker, window=WINDOW)
    return worker, await collect(runtime.submit(text))


def read(number: int, first: int = 1, path: str = "a.py") -> ToolCall:
    return call(f"c{number}", "read", path=path, offset=first, limit=150)


LOOPS: dict[str, Callable[[int], ToolCall]] = {
    "one range": read,
    "two files in turn": lambda n: read(n, path=("a.py", "b.py")[n % 2]),
    "ranges that were read before": lambda n: read(n, first=1 + n % 7),
    "a command with a long output": lambda n: call(f"c{n}", "bash", command="cat a.py"),
    "a search": lambda n: call(f"c{n}", "grep", pattern="value"),
    "a step that it numbers itself": lambda n: _look_or_run(n, f"echo step {n}"),
}


def _look_or_run(number: int, command: str) -> ToolCall:
    if number % 4 == 3:
        return call(f"c{number}", "bash", command=command)
    return read(number, path=("a.py", "b.py")[number % 2])


@pytest.mark.parametrize("name", LOOPS)
async def test_a_turn_in_which_only_compactions_happen_ends(stage: Stage, name: str):
    worker, events = await _work(stage, LOOPS[name])
    end = only(events, TurnFinished)
    assert (end.outcome, end.can_continue) == ("limit", True)
    assert "compacted 3 times" in end.error or "same result 6 times" in end.error
    assert len(of_kind(events, CompactionFinished)) <= 5
    assert worker.turns <= 20
    assert worker.sent_chars / 4 < 20 * WINDOW


async def test_a_loop_says_what_fills_the_context_and_how_to_go_on(stage: Stage):
    _, events = await _work(stage, LOOPS["two files in turn"])
    end = only(events, TurnFinished)
    assert end.outcome == "limit"
    assert IN_CHAT.fill("{model}") in end.error
    assert "read" in end.error


async def test_a_loop_that_is_continued_gets_three_compactions_again(stage: Stage):
    _fill(stage.workspace)
    worker = Worker(LOOPS["two files in turn"])
    runtime = stage.runtime(worker, window=WINDOW)
    first = await collect(runtime.submit("go"))
    again = await collect(runtime.continue_turn())
    assert only(again, TurnFinished).outcome == "limit"
    assert len(of_kind(again, CompactionFinished)) >= 3
    assert len(of_kind(first, CompactionFinished)) >= 3


def _edit(number: int) -> ToolCall:
    if number % 4 == 3:
        return call(f"c{number}", "write", path="out.py", content=f"x = {number}\n")
    return read(number, path=("a.py", "b.py")[number % 2])


WORK: dict[str, Callable[[int], ToolCall | None]] = {
    "a large file in ranges": lambda n: read(n, first=1 + 100 * n) if n < 29 else None,
    "an edit at times": lambda n: _edit(n) if n < 40 else None,
    "a command at times": lambda n: _look_or_run(n, f"echo {chr(97 + n // 4)}") if n < 40 else None,
}


@pytest.mark.parametrize("name", WORK)
async def test_work_in_a_small_window_is_not_taken_for_a_loop(stage: Stage, name: str):
    worker, events = await _work(stage, WORK[name])
    assert only(events, TurnFinished).outcome == "done", only(events, TurnFinished).error
    assert worker.turns >= 30
    assert len(of_kind(events, CompactionFinished)) > 5


async def test_a_message_of_the_user_gives_a_loop_three_more_compactions(stage: Stage):
    loop = LOOPS["ranges that were read before"]

    def makes(number: int) -> ToolCall:
        if number == alone.turns - 1:
            runtime.enqueue("Look at a.py again.")
        return loop(number)

    alone, events = await _work(stage, loop)
    before = len(of_kind(events, CompactionFinished))
    worker = Worker(makes)
    runtime = stage.runtime(worker, window=WINDOW)
    events = await collect(runtime.submit("go"))
    assert only(events, TurnFinished).outcome == "limit"
    assert len(of_kind(events, CompactionFinished)) > before
