"""Another model goes on where the first does not answer."""

import pytest

from agent_tui.events import ModelChanged, Notice, RetryScheduled, TurnFinished
from agent_tui.providers.base import FaultKind, ModelRef, ModelRequest, ProviderError
from agent_tui.providers.budget import BudgetSpent
from agent_tui.providers.scripted.provider import Reply
from agent_tui.sessions.entries import ModelChangeEntry
from tests.support.runtime import MODEL, Stage, collect, of_kind, only

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
