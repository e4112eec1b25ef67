"""A turn waits for a usage limit to reset, and continues without a key pressed."""

import asyncio
import platform

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.turn.limit_wait import LIMIT_WAIT, LimitWait
from agent_tui.events import (
    AgentEvent,
    LimitWaitEnded,
    LimitWaitStarted,
    RetryScheduled,
    TurnFinished,
    TurnRecorded,
)
from agent_tui.features.tour.scripted import Reply
from agent_tui.providers.base import FaultKind, ProviderError
from agent_tui.sessions.entries import custom_value
from tests.support.runtime import MODEL, Script, Stage, collect, of_kind, only
from tests.support.wall_clock import START_S, SleptClock

HOUR_S = 3_600.0
DONE = Reply("Done.")


def limited(seconds: float) -> Reply:
    return Reply(error=ProviderError("rate_limit", "Too fast.", retry_after_s=seconds))


def down(kind: FaultKind = "overloaded", *, has_answered: bool = True) -> Reply:
    error = ProviderError(kind, "It is down.")
    error.has_answered = has_answered
    return Reply(error=error)


@pytest.fixture
def clock() -> SleptClock:
    return SleptClock()


def at_work(stage: Stage, clock: SleptClock, script: Script, hours: float = 12) -> AgentRuntime:
    runtime = stage.runtime(script, sleep=clock.sleep, limit_wait_h=hours)
    runtime.services.wall_clock = clock.read
    return runtime


def outcome(events: list[AgentEvent]) -> str:
    return only(events, TurnFinished).outcome


def states(runtime: AgentRuntime) -> list[str]:
    found = (custom_value(e, LIMIT_WAIT, LimitWait) for e in runtime.conversation.log.entries)
    return [wait.state for wait in found if wait is not None]


async def test_a_limit_of_seconds_is_an_ordinary_retry(stage: Stage, clock: SleptClock):
    runtime = at_work(stage, clock, [limited(30), DONE])
    events = await collect(runtime.submit("go"))
    assert outcome(events) == "done"
    assert only(events, RetryScheduled).delay_s == 30
    assert not of_kind(events, LimitWaitStarted)


async def test_a_limit_of_hours_is_waited_for(stage: Stage, clock: SleptClock):
    runtime = at_work(stage, clock, [limited(5 * HOUR_S), DONE])
    events = await collect(runtime.submit("go"))
    assert outcome(events) == "done"
    started, ended = only(events, LimitWaitStarted), only(events, LimitWaitEnded)
    assert started.reason == f"Usage limit of {MODEL.name} reached."
    assert started.is_reset
    assert 2 <= started.until_s - (START_S + 5 * HOUR_S) <= 10
    assert ended.waited_s == started.wait_s
    assert clock.now_s == pytest.approx(started.until_s)
    assert max(clock.slept_s) == 30
    assert states(runtime) == ["waiting", "over"]
    assert not of_kind(events, RetryScheduled)


async def test_the_time_of_a_turn_leaves_out_the_wait(stage: Stage, clock: SleptClock):
    runtime = stage.runtime(
        [limited(5 * HOUR_S), DONE], sleep=clock.sleep, clock=clock.read, limit_wait_h=12
    )
    runtime.services.wall_clock = clock.read
    events = await collect(runtime.submit("go"))
    assert only(events, LimitWaitEnded).waited_s > 4 * HOUR_S
    assert not of_kind(events, TurnRecorded), "a turn of no time is not worth a line"


async def test_a_suspended_laptop_continues_soon_after_it_wakes(stage: Stage):
    clock = SleptClock(suspended_s=8 * HOUR_S)
    runtime = at_work(stage, clock, [limited(5 * HOUR_S), DONE])
    assert outcome(await collect(runtime.submit("go"))) == "done"
    assert clock.slept_s == [30]


async def test_a_clock_that_is_set_back_does_not_prolong_the_wait(stage: Stage):
    clock = SleptClock(suspended_s=-48 * HOUR_S)
    runtime = at_work(stage, clock, [limited(HOUR_S), DONE])
    assert outcome(await collect(runtime.submit("go"))) == "done"
    assert sum(clock.slept_s) == pytest.approx(HOUR_S, abs=11)


async def test_a_limit_that_still_holds_at_its_reset_is_waited_for_again(
    stage: Stage, clock: SleptClock
):
    runtime = at_work(stage, clock, [limited(5 * HOUR_S), limited(HOUR_S), limited(9), DONE])
    events = await collect(runtime.submit("go"))
    assert outcome(events) == "done"
    assert [round(e.wait_s / HOUR_S) for e in of_kind(events, LimitWaitStarted)] == [5, 1]
    assert only(events, RetryScheduled).delay_s == 9


async def test_the_bound_counts_all_waits_of_a_turn(stage: Stage, clock: SleptClock):
    runtime = at_work(stage, clock, [limited(5 * HOUR_S), limited(2 * HOUR_S)], hours=6)
    events = await collect(runtime.submit("go"))
    end = only(events, TurnFinished)
    assert (end.outcome, end.can_continue) == ("error", True)
    assert end.error.startswith("Too fast. It resets at ")
    assert len(of_kind(events, LimitWaitStarted)) == 1


async def test_switched_off_only_what_retries_would_take_is_waited(stage: Stage, clock: SleptClock):
    runtime = at_work(stage, clock, [limited(200), limited(HOUR_S), DONE], hours=0)
    events = await collect(runtime.submit("go"))
    assert "It resets at" in only(events, TurnFinished).error
    assert only(events, LimitWaitStarted).wait_s == pytest.approx(206, abs=4)


async def test_an_outage_is_looked_at_again_at_growing_intervals(stage: Stage, clock: SleptClock):
    runtime = at_work(stage, clock, [down()] * 13 + [DONE])
    events = await collect(runtime.submit("go"))
    assert outcome(events) == "done"
    waits = of_kind(events, LimitWaitStarted)
    assert [wait.wait_s for wait in waits] == [300, 600, 900, 900]
    assert not waits[0].is_reset
    assert waits[0].reason == "It is down."


async def test_an_outage_ends_the_turn_at_the_bound(stage: Stage, clock: SleptClock):
    runtime = at_work(stage, clock, lambda _request: down("network"), hours=1)
    events = await collect(runtime.submit("go"))
    assert only(events, TurnFinished).error == "It is down."
    assert sum(wait.wait_s for wait in of_kind(events, LimitWaitStarted)) == HOUR_S


@pytest.mark.parametrize(
    ("kind", "has_answered", "hours"),
    [
        ("overloaded", False, 12),
        ("overloaded", True, 0),
        ("timeout", True, 12),
        ("quota", True, 12),
    ],
)
async def test_what_is_not_looked_at_again(
    stage: Stage, clock: SleptClock, kind: FaultKind, has_answered: bool, hours: float
):
    failure = down(kind, has_answered=has_answered)
    runtime = at_work(stage, clock, lambda _request: failure, hours)
    events = await collect(runtime.submit("go"))
    assert outcome(events) == "error"
    assert not of_kind(events, LimitWaitStarted)


async def test_a_message_typed_during_the_wait_is_delivered_after_it(
    stage: Stage, clock: SleptClock
):
    runtime = at_work(stage, clock, [limited(HOUR_S), DONE, Reply("And that.")])
    events: list[AgentEvent] = []
    async for event in runtime.submit("go"):
        events.append(event)
        if isinstance(event, LimitWaitStarted):
            runtime.enqueue("one more thing")
    assert outcome(events) == "done"
    assert stage.model.requests[-1].messages[-1].text == "one more thing"


async def stopped_during_the_wait(runtime: AgentRuntime, *, ends_wait: bool) -> list[AgentEvent]:
    events: list[AgentEvent] = []
    async for event in runtime.submit("go"):
        events.append(event)
        if isinstance(event, LimitWaitStarted):
            runtime.abort(ends_wait=ends_wait)
    return events


async def reopened(stage: Stage, clock: SleptClock, before: AgentRuntime) -> AgentRuntime:
    path = before.conversation.log.path
    await before.aclose()
    runtime = at_work(stage, clock, [DONE])
    await runtime.sessions.open(str(path))
    return runtime


class SlowClock(SleptClock):
    """A clock with a sleep that lasts until it is cancelled."""

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        await asyncio.Event().wait()


async def test_esc_ends_the_wait_and_retry_continues(stage: Stage):
    clock = SlowClock()
    runtime = at_work(stage, clock, [limited(5 * HOUR_S), DONE])
    events = await stopped_during_the_wait(runtime, ends_wait=True)
    assert outcome(events) == "aborted"
    assert states(runtime) == ["waiting", "stopped"]
    assert runtime.unfinished_wait is None
    assert outcome(await collect(runtime.continue_turn())) == "done"


async def test_a_program_that_ends_during_the_wait_continues_it_when_it_is_back(stage: Stage):
    before = at_work(stage, SlowClock(), [limited(5 * HOUR_S)])
    await stopped_during_the_wait(before, ends_wait=False)
    clock = SleptClock()
    clock.now_s += 2 * HOUR_S
    runtime = await reopened(stage, clock, before)
    wait = runtime.unfinished_wait
    assert wait is not None
    events = await collect(runtime.continue_turn())
    assert outcome(events) == "done"
    assert only(events, LimitWaitStarted).until_s == wait.until_s
    assert sum(clock.slept_s) == pytest.approx(3 * HOUR_S, abs=11)
    assert states(runtime) == ["waiting", "over"]
    assert runtime.unfinished_wait is None


async def test_a_reset_that_passed_meanwhile_is_not_waited_for(stage: Stage):
    before = at_work(stage, SlowClock(), [limited(HOUR_S)])
    await stopped_during_the_wait(before, ends_wait=False)
    clock = SleptClock()
    clock.now_s += 6 * HOUR_S
    runtime = await reopened(stage, clock, before)
    assert runtime.unfinished_wait is not None
    assert outcome(await collect(runtime.continue_turn())) == "done"
    assert clock.slept_s == []


async def test_days_later_nothing_is_sent_unasked(stage: Stage):
    before = at_work(stage, SlowClock(), [limited(HOUR_S)])
    await stopped_during_the_wait(before, ends_wait=False)
    clock = SleptClock()
    clock.now_s += 24 * HOUR_S
    assert (await reopened(stage, clock, before)).unfinished_wait is None


async def test_a_session_of_another_machine_does_not_continue_automatically(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    before = at_work(stage, SlowClock(), [limited(HOUR_S)])
    await stopped_during_the_wait(before, ends_wait=False)
    monkeypatch.setattr(platform, "node", lambda: "another-machine")
    runtime = await reopened(stage, SleptClock(), before)
    assert runtime.unfinished_wait is None
    assert outcome(await collect(runtime.continue_turn())) == "done"
