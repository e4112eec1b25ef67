"""Compacting by a strategy, in place: by itself, when asked, cancelled, undone, resumed."""

import asyncio
import re
from collections.abc import Callable
from contextlib import aclosing
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
from agent_tui.features.strategies.hybrid import SYSTEM_PROMPT
from agent_tui.features.tour.scripted import Reply
from agent_tui.providers.base import ModelRequest, ProviderError
from agent_tui.sessions.entries import CompactionEntry, ContextEditEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import report_of
from tests.features.strategies.hybrid.scene import shortened
from tests.support.compaction_ways import talk
from tests.support.context_checks import assert_sendable, context_bytes
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, lines_of, of_kind, only

HYBRID = CompactionSettings(strategy="hybrid")
WINDOW = 16_500


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def in_fewer_words(request: ModelRequest) -> str:
    """What a model makes of the messages it is asked to shorten."""
    return shortened(request) if request.system == SYSTEM_PROMPT else GOOD_SUMMARY


def answers(summary: Callable[[ModelRequest], Reply]) -> Callable[[ModelRequest], Reply]:
    """A script: turns are fine, requests of a compaction as `summary` says."""
    return lambda request: summary(request) if request.purpose == "summary" else Reply(text="Fine.")


def works(request: ModelRequest) -> Reply:
    return Reply(text=in_fewer_words(request))


def fails(_request: ModelRequest) -> Reply:
    return Reply(error=ProviderError("auth", "The key is wrong."))


def full(stage: Stage, summary: Callable[[ModelRequest], Reply] = works, **kwargs) -> AgentRuntime:
    """A conversation of some 13,000 tokens."""
    runtime = stage.runtime(answers(summary), window=WINDOW, **{"compaction": HYBRID, **kwargs})
    talk(runtime.conversation.log, 13)
    return runtime


def edits_of(runtime: AgentRuntime) -> list[ContextEditEntry]:
    return [
        entry
        for entry in runtime.conversation.log.path_entries()
        if isinstance(entry, ContextEditEntry)
    ]


async def test_it_fires_at_seven_tenths_and_tells_what_it_did(stage: Stage) -> None:
    runtime = full(stage)
    talked = len(runtime.conversation.log.path_entries())
    events = await collect(runtime.submit("go on"))
    finished = only(events, CompactionFinished)
    assert finished.strategy == "hybrid"
    assert finished.tokens_after <= runtime.conversation.limits.target
    assert finished.statistics["after"] == finished.tokens_after
    assert re.match(
        r"hybrid: \d+ user messages, \d+ assistant messages, \d+ protected\.$", finished.note
    )
    assert only(events, TurnFinished).outcome == "done"
    assert not any(
        isinstance(entry, CompactionEntry) for entry in runtime.conversation.log.path_entries()
    )
    assert_sendable(runtime.conversation.log.path_entries())
    assert len(edits_of(runtime)) > 0
    reports = [
        report for entry in runtime.conversation.log.path_entries() if (report := report_of(entry))
    ]
    assert [report.strategy for report in reports] == ["hybrid"]
    assert len(runtime.conversation.log.path_entries()) > talked + len(edits_of(runtime)) + 1


async def test_the_tiers_wait_for_eight_tenths(stage: Stage) -> None:
    early = CompactionSettings(strategy="hybrid", trigger_at=0.95)
    for compaction in (early, CompactionSettings(trigger_at=0.95)):
        runtime = full(stage, compaction=compaction)
        assert not of_kind(await collect(runtime.submit("go on")), CompactionFinished)
    assert HYBRID.trigger_at == 0.70
    assert CompactionSettings().trigger_at == 0.80


@pytest.mark.parametrize("strategy", ["tiered", "hybrid", "agent"])
async def test_when_asked_it_works_in_the_same_session(stage: Stage, strategy: str) -> None:
    runtime = full(stage, compaction=CompactionSettings())
    file = runtime.conversation.log.path
    before = context_bytes(runtime.conversation.log.path_entries())
    events = await collect(runtime.compact_here(strategy, "the greeting"))
    assert only(events, CompactionFinished).tokens_after < 13_000
    assert runtime.conversation.log.path == file
    assert_sendable(runtime.conversation.log.path_entries())
    after = context_bytes(runtime.conversation.log.path_entries())
    assert after != before
    assert file is not None
    with SessionLog.open(file, read_only=True) as log:
        assert context_bytes(log.path_entries()) == after
    await undo_compaction(runtime)
    assert context_bytes(runtime.conversation.log.path_entries()) == before


async def test_without_a_name_it_goes_by_the_strategy_that_is_set(stage: Stage) -> None:
    runtime = full(stage)
    file = runtime.conversation.log.path
    finished = only(await collect(runtime.compact()), CompactionFinished)
    assert (finished.strategy, runtime.conversation.log.path) == ("hybrid", file)
    runtime = full(stage, compaction=CompactionSettings())
    file = runtime.conversation.log.path
    only(await collect(runtime.compact()), CompactionFinished)
    assert runtime.conversation.log.path != file


async def test_a_context_below_the_target_is_shortened_when_asked(stage: Stage) -> None:
    runtime = stage.runtime(answers(works), window=200_000)
    talk(runtime.conversation.log, 13)
    finished = only(await collect(runtime.compact_here("hybrid")), CompactionFinished)
    assert finished.strategy == "hybrid"
    again = await collect(runtime.compact_here("hybrid"))
    assert runtime.conversation.usage.used < 13_000
    assert len(edits_of(runtime)) == sum(finished.messages.values())
    assert of_kind(again, CompactionFailed)


async def test_a_model_that_fails_costs_words_and_the_person_is_told(stage: Stage) -> None:
    runtime = full(stage, fails)
    finished = only(await collect(runtime.submit("go on")), CompactionFinished)
    assert finished.strategy == "hybrid"
    assert "were cut, not rewritten (scripted/test: The key is wrong)." in finished.note
    assert_sendable(runtime.conversation.log.path_entries())


async def test_where_it_is_not_enough_the_tiers_take_over(stage: Stage) -> None:
    runtime = stage.runtime(answers(works), window=7_000, compaction=HYBRID)
    talk(runtime.conversation.log, 8)
    events = await collect(runtime.submit("go on"))
    finished = only(events, CompactionFinished)
    assert finished.note.startswith("hybrid: ")
    assert "The tiers took over." in finished.note
    assert finished.strategy == ""
    assert finished.summary
    assert only(events, TurnFinished).outcome == "done"


async def test_cancelling_writes_nothing(stage: Stage) -> None:
    gate = asyncio.Event()
    runtime = full(
        stage,
        lambda request: Reply(text=in_fewer_words(request), gate=gate),
        compaction=CompactionSettings(),
    )
    before = lines_of(runtime)
    events: list[AgentEvent] = []
    async with aclosing(runtime.compact_here("hybrid")) as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event, CompactionProgress) and event.summary_chars:
                runtime.abort()
    assert only(events, CompactionFailed).message == "Compaction cancelled; nothing was changed."
    assert lines_of(runtime) == before


async def test_nothing_to_gain_is_said(stage: Stage) -> None:
    runtime = stage.runtime(answers(works))
    await collect(runtime.submit("hello"))
    before = lines_of(runtime)
    failed = only(await collect(runtime.compact_here("hybrid")), CompactionFailed)
    assert failed.message.startswith("Nothing to compact")
    assert lines_of(runtime) == before


async def test_what_calls_cost_is_counted(stage: Stage) -> None:
    runtime = full(stage, compaction=CompactionSettings())
    before = runtime.conversation.totals.input_tokens
    await collect(runtime.compact_here("hybrid"))
    assert runtime.conversation.totals.input_tokens > before
