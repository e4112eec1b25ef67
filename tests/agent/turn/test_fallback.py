"""Another model goes on where the first does not answer."""

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.events import (
    AgentEvent,
    LimitWaitStarted,
    ModelChanged,
    Notice,
    ReplyFinished,
    RetryScheduled,
    TurnFinished,
)
from agent_tui.features.tour.scripted import Reply
from agent_tui.providers.base import FaultKind, ModelRef, ModelRequest, ProviderError
from agent_tui.providers.limits import BudgetSpent
from agent_tui.sessions.entries import ModelChangeEntry
from tests.support.runtime import MODEL, Script, Stage, collect, of_kind, only
from tests.support.wall_clock import START_S, SleptClock

HOUR_S = 3_600.0
SECOND = ModelRef("other/second")


async def no_sleep(_seconds: float) -> None:
    pass


def failing(*models: str, kind: FaultKind = "overloaded"):
    def answer(request: ModelRequest) -> Reply:
        if request.model.name in models:
            return Reply(error=ProviderError(kind, "It is overloaded."))
        return Reply(f"Here is {request.model.name}.")

    return answer


@pytest.mark.parametrize("is_interactive", [True, False])
async def test_the_second_model_goes_on_after_the_retries(stage: Stage, is_interactive: bool):
    runtime = stage.runtime(
        failing(MODEL.name), sleep=no_sleep, fallback_model=SECOND, is_interactive=is_interactive
    )
    events = await collect(runtime.submit("go"))
    assert len(of_kind(events, RetryScheduled)) == 3
    assert only(events, TurnFinished).outcome == "done"
    assert only(events, ModelChanged).model == SECOND.name
    told = [notice.text for notice in of_kind(events, Notice)]
    assert "It is overloaded. Switching to other/second." in told
    entries = runtime.conversation.log.path_entries()
    assert [entry.model_id for entry in entries if isinstance(entry, ModelChangeEntry)] == [
        "second"
    ]
    await collect(runtime.submit("more"))
    assert [request.model for request in stage.model.requests[-2:]] == [SECOND, SECOND]


async def test_where_neither_answers_the_turn_fails(stage: Stage):
    runtime = stage.runtime(failing(MODEL.name, SECOND.name), sleep=no_sleep, fallback_model=SECOND)
    events = await collect(runtime.submit("go"))
    assert only(events, TurnFinished).error == "It is overloaded."
    assert len(of_kind(events, RetryScheduled)) == 3 + 9


@pytest.mark.parametrize(("kind", "is_tried"), [("quota", True), ("auth", False)])
async def test_what_waiting_does_not_mend(stage: Stage, kind: FaultKind, is_tried: bool):
    runtime = stage.runtime(failing(MODEL.name, kind=kind), fallback_model=SECOND)
    events = await collect(runtime.submit("go"))
    assert (only(events, TurnFinished).outcome == "done") is is_tried


async def test_a_budget_that_is_spent_is_no_reason_for_another_model(stage: Stage):
    runtime = stage.runtime([Reply(error=BudgetSpent("Spent."))], fallback_model=SECOND)
    events = await collect(runtime.submit("go"))
    assert only(events, TurnFinished).outcome == "limit"
    assert not of_kind(events, ModelChanged)


def limited_models(clock: SleptClock, **until_h: float):
    """Models that refuse until so many hours after the start of `clock`."""

    def answer(request: ModelRequest) -> Reply:
        left_s = START_S + until_h.get(request.model.model_id, 0) * HOUR_S - clock.read()
        if left_s > 0:
            return Reply(error=ProviderError("rate_limit", "Too fast.", retry_after_s=left_s))
        return Reply(f"Here is {request.model.name}.")

    return answer


def playing(stage: Stage, clock: SleptClock, script: Script) -> AgentRuntime:
    runtime = stage.runtime(script, sleep=clock.sleep, fallback_model=SECOND, limit_wait_h=12)
    runtime.services.wall_clock = clock.read
    return runtime


def at_work(stage: Stage, clock: SleptClock, **until_h: float) -> AgentRuntime:
    return playing(stage, clock, limited_models(clock, **until_h))


def texts(events: list[AgentEvent]) -> list[str]:
    return [event.message.text for event in of_kind(events, ReplyFinished)]


async def test_a_limited_model_is_returned_to_when_its_limit_has_reset(stage: Stage):
    clock = SleptClock()
    runtime = at_work(stage, clock, **{MODEL.model_id: 5})
    events = await collect(runtime.submit("go"))
    assert texts(events) == ["Here is other/second."]
    assert not of_kind(events, LimitWaitStarted)
    assert texts(await collect(runtime.submit("more"))) == ["Here is other/second."]
    clock.now_s += 5 * HOUR_S + 1
    events = await collect(runtime.submit("and more"))
    assert texts(events) == [f"Here is {MODEL.name}."]
    said = f"The limit of {MODEL.name} has reset. Switching back to it."
    assert said in [notice.text for notice in of_kind(events, Notice)]


async def test_a_model_that_was_chosen_meanwhile_stays(stage: Stage):
    clock = SleptClock()
    runtime = at_work(stage, clock, **{MODEL.model_id: 5})
    await collect(runtime.submit("go"))
    runtime.set_model(SECOND)
    clock.now_s += 6 * HOUR_S
    assert texts(await collect(runtime.submit("more"))) == ["Here is other/second."]


@pytest.mark.parametrize(("first_h", "second_h"), [(5, 3), (3, 5)])
async def test_when_both_are_limited_the_first_reset_counts(
    stage: Stage, first_h: float, second_h: float
):
    clock = SleptClock()
    runtime = at_work(stage, clock, **{MODEL.model_id: first_h, SECOND.model_id: second_h})
    events = await collect(runtime.submit("go"))
    assert only(events, LimitWaitStarted).wait_s == pytest.approx(3 * HOUR_S, abs=11)
    assert texts(events) == [f"Here is {(MODEL if first_h == 3 else SECOND).name}."]


async def test_the_first_model_is_returned_to_over_a_restart(stage: Stage):
    clock = SleptClock()
    before = at_work(stage, clock, **{MODEL.model_id: 5})
    await collect(before.submit("go"))
    path = before.conversation.log.path
    await before.aclose()
    runtime = at_work(stage, clock, **{MODEL.model_id: 5})
    await runtime.sessions.open(str(path))
    assert runtime.conversation.model == SECOND
    assert texts(await collect(runtime.submit("more"))) == ["Here is other/second."]
    clock.now_s += 6 * HOUR_S
    assert texts(await collect(runtime.submit("and more"))) == [f"Here is {MODEL.name}."]


@pytest.mark.parametrize("kind", ["quota", "auth", "network"])
async def test_when_the_fallback_fails_for_good_the_first_limit_is_waited_for(
    stage: Stage, kind: FaultKind
):
    clock = SleptClock()
    first = limited_models(clock, **{MODEL.model_id: 5})

    def answer(request: ModelRequest) -> Reply:
        if request.model == SECOND:
            return Reply(error=ProviderError(kind, "No."))
        return first(request)

    events = await collect(playing(stage, clock, answer).submit("go"))
    assert only(events, LimitWaitStarted).reason == f"Usage limit of {MODEL.name} reached."
    assert texts(events) == [f"Here is {MODEL.name}."]


async def test_an_outage_of_the_fallback_is_looked_at_before_the_limit_resets(stage: Stage):
    clock = SleptClock()
    first, down = limited_models(clock, **{MODEL.model_id: 5}), [True] * 10

    def answer(request: ModelRequest) -> Reply:
        if request.model == SECOND and down:
            down.pop()
            error = ProviderError("overloaded", "It is down.")
            error.has_answered = True
            return Reply(error=error)
        return first(request)

    events = await collect(playing(stage, clock, answer).submit("go"))
    assert only(events, LimitWaitStarted).wait_s == 300
    assert texts(events) == ["Here is other/second."]
