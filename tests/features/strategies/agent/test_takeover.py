"""A conversation with ``strategy = "agent"``: its work is one append, and the tiers stand in."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.config import CompactionSettings
from agent_tui.events import (
    AgentEvent,
    CompactionFailed,
    CompactionFinished,
    CompactionProgress,
    TurnFinished,
)
from agent_tui.features.context.undo import undo_compaction
from agent_tui.features.strategies.agent.actions import TOOLS
from agent_tui.features.tour.scripted import Reply, ScriptedProvider
from agent_tui.messages import ToolResultMessage
from agent_tui.providers.base import ModelRequest, ProviderError
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry, ContextEditEntry
from agent_tui.sessions.replay.changes import report_of
from tests.features.strategies.agent.scene import long_session, segment, shorten, verify
from tests.support.compaction_ways import SUMMARY, assert_sound
from tests.support.context_checks import context_bytes
from tests.support.runtime import Stage, collect, of_kind, only

WINDOW = 20_000
FULL = 9
"""Turns of `long_session` that fill the window to where it is compacted."""

Answer = Callable[[int], Reply]
"""What the agent replies in the round of that number, from 1."""


class Script:
    """Turns are fine, summaries are good; the agent's rounds are as told."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.rounds = 0
        self.provider = ScriptedProvider(self)

    def __call__(self, request: ModelRequest) -> Reply:
        if request.purpose == "turn":
            return Reply(text="Fine.")
        if request.tools != TOOLS:
            return Reply(text=SUMMARY.replace("greet", "part"))
        self.rounds += 1
        return self.answer(self.rounds)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def started(stage: Stage, script: Script) -> AgentRuntime:
    settings = CompactionSettings(
        strategy="agent", protected_messages=4, keep_recent_tokens=2_000, min_gain=0.05
    )
    runtime = stage.runtime(script.provider, window=WINDOW, compaction=settings)
    for entry in long_session(FULL):
        runtime.conversation.log.append(entry.model_copy(update={"id": ""}))
    return runtime


ACCOUNT = (
    "The person asked to look at src/part{0}.py and to fix the parser; the file was read, the "
    "tests in tests/part{0} were run and passed, and the answer was that it works as it is."
)


def good(number: int) -> Reply:
    spans = [(6 * part + 1, 6 * part + 6, part) for part in range(5)]
    match number:
        case 1:
            return Reply(tool_calls=(shorten("1-50"), verify()))
        case 2:
            return Reply(tool_calls=tuple(segment(a, b, call_id=f"s{p}") for a, b, p in spans))
        case _:
            texts = (segment(a, b, ACCOUNT.format(p), call_id=f"s{p}") for a, b, p in spans)
            return Reply(tool_calls=(*texts, verify()))


async def test_what_the_agent_did_is_one_batch_with_its_report(stage: Stage) -> None:
    script = Script(good)
    runtime = started(stage, script)
    length = len(runtime.conversation.log.path_entries())
    events = await collect(runtime.submit("go on"))
    told = only(events, CompactionFinished)
    assert (told.strategy, told.reason) == ("agent", "threshold")
    assert told.tokens_after < told.tokens_before // 2
    path = runtime.conversation.log.path_entries()
    places = [n for n, entry in enumerate(path) if isinstance(entry, ContextEditEntry)]
    assert places == list(range(places[0], places[0] + len(places)))
    assert places[0] > length
    report = report_of(path[places[-1] + 1])
    assert report is not None
    assert report.strategy == "agent"
    assert {entry.batch for entry in path if isinstance(entry, ContextEditEntry)} == {report.batch}
    assert of_kind(events, CompactionFailed) == []
    assert only(events, TurnFinished).outcome == "done"
    phases = [event.phase for event in of_kind(events, CompactionProgress)]
    assert any(phase.startswith("compression agent 3/8, 16 messages") for phase in phases)
    assert_sound(runtime.conversation.log.path)


async def test_undoing_it_brings_the_context_back(stage: Stage) -> None:
    runtime = started(stage, Script(good))
    await collect(runtime.submit("go on"))
    before = context_bytes(
        [e for e in runtime.conversation.log.path_entries() if not isinstance(e, ContextEditEntry)]
    )
    assert context_bytes(runtime.conversation.log.path_entries()) != before
    await undo_compaction(runtime)
    assert context_bytes(runtime.conversation.log.path_entries()) == before


_BROKEN = ProviderError("crashed", "The provider process died.")
FAILURES: dict[str, Answer] = {
    "it talks": lambda number: Reply(text="I would rather talk."),
    "it talks after good work": lambda number: good(1) if number == 1 else Reply(text="Done."),
    "it names messages that are not there": lambda number: Reply(tool_calls=(shorten("999"),)),
    "it only verifies": lambda number: Reply(tool_calls=(verify(),)),
    "it cannot be reached": lambda number: Reply(error=ProviderError("auth", "Refused.")),
    "it breaks off": lambda number: good(1) if number == 1 else Reply(error=_BROKEN),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_where_the_agent_fails_nothing_of_it_is_written_and_the_tiers_take_over(
    name: str, stage: Stage
) -> None:
    runtime = started(stage, Script(FAILURES[name]))
    events = await collect(runtime.submit("go on"))
    told = only(events, CompactionFinished)
    assert told.strategy == ""
    assert "compression agent" in told.note
    assert "The tiers took over." in told.note
    assert of_kind(events, CompactionFailed) == []
    assert only(events, TurnFinished).outcome == "done"
    path = runtime.conversation.log.path_entries()
    reports = [report for report in map(report_of, path) if report is not None]
    assert all(report.strategy == "" for report in reports)
    assert any(isinstance(e, CompactionEntry | ContextEditEntry) for e in path)
    assert not any(isinstance(e, ContextEditEntry) and e.tier == 3 for e in path)
    assert_sound(runtime.conversation.log.path)


async def test_cancelling_in_a_round_leaves_the_file_as_it_was(stage: Stage) -> None:
    gate = asyncio.Event()
    script = Script(lambda number: good(1) if number == 1 else Reply(text="Well", gate=gate))
    runtime = started(stage, script)
    seen: list[AgentEvent] = []

    async def work() -> None:
        async for event in runtime.submit("go on"):
            seen.append(event)

    task = asyncio.create_task(work())
    while script.rounds < 2:
        await asyncio.sleep(0)
    runtime.abort()
    await task
    assert "cancelled; nothing was changed" in only(seen, CompactionFailed).message
    path = runtime.conversation.log.path_entries()
    assert not any(isinstance(e, CompactionEntry | ContextEditEntry) for e in path)
    results = [
        item
        for item in build_context(path).messages
        if isinstance(item.message, ToolResultMessage) and "[recall" in item.message.text
    ]
    assert results == []
    assert_sound(runtime.conversation.log.path)
