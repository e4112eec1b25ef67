"""Loops of the person's: rounds, their one end, and the summary that stands for them."""

import asyncio
import dataclasses
from collections.abc import Callable

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.errors import AgentTuiError
from agent_tui.events import (
    AgentEvent,
    ContextChanged,
    LoopAdvanced,
    Notice,
    ReplyStarted,
    ScopeEntered,
    ScopeLeft,
    ScopeProgress,
    TurnFinished,
)
from agent_tui.features.context.undo import undo_compaction
from agent_tui.features.export.documents import MARKDOWN
from agent_tui.features.loops.plan import LoopPlan, parse_loop
from agent_tui.features.loops.scopes import ScopeState, scope_state
from agent_tui.features.tour.replies import demo_reply
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.features.tree.branches import Branches
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelRequest, ProviderError
from agent_tui.sessions.export.formats import export_text
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.scope_entries import ScopeExit, ScopePending, mark_of
from tests.features.loops.running import run_loop
from tests.support.compaction_ways import talk
from tests.support.context_checks import assert_sendable, context_bytes
from tests.support.rows import each_row
from tests.support.runtime import Stage, collect, lines_of, of_kind, only

SUMMARY = "Rule 3 of lint.toml is met everywhere; util.py was left alone."
LONG = "I looked at every line of it with care and found nothing wrong. " * 20
PLAN = LoopPlan("Look at {item}.", 3, ("a.py", "b.py", "c.py"), is_compressed=True)
LABEL = PLAN.label


class Model:
    """Answers turns as told, then with a long text; summaries as told, then well."""

    def __init__(self, *turns: Reply, summaries: tuple[Reply, ...] = ()) -> None:
        self._turns = list(turns)
        self._summaries = list(summaries)
        self.provider = ScriptedProvider(self._answer)

    def _answer(self, request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return self._summaries.pop(0) if self._summaries else Reply(text=SUMMARY)
        return self._turns.pop(0) if self._turns else Reply(text=LONG)

    @property
    def turns(self) -> list[ModelRequest]:
        return [r for r in self.provider.requests if r.purpose == "turn"]

    @property
    def summaries(self) -> list[ModelRequest]:
        return [r for r in self.provider.requests if r.purpose == "summary"]


def seen(runtime: AgentRuntime) -> list[str]:
    """The texts that the model sees, each shortened."""
    return [message.text[:60] for message in runtime.conversation.request().messages]


def broken() -> Reply:
    return Reply(error=ProviderError("auth", "The key is wrong."))


async def test_a_loop_runs_its_rounds_and_is_summed_up_at_its_end(stage: Stage):
    model = Model()
    runtime = stage.runtime(model.provider)
    await collect(runtime.submit("Hello."))
    events = await collect(run_loop(runtime, PLAN))
    assert [(e.number, e.count) for e in of_kind(events, LoopAdvanced)] == [(1, 3), (2, 3), (3, 3)]
    assert only(events, TurnFinished) == TurnFinished("done")
    assert events[-1] == TurnFinished("done")
    assert only(events, ScopeEntered).label == LABEL
    left = only(events, ScopeLeft)
    assert left.summary == SUMMARY
    assert 0 < left.tokens_after < left.tokens_before
    assert runtime.conversation.usage.used == left.tokens_after
    assert seen(runtime) == [
        "Hello.",
        LONG[:60],
        f"==> {LABEL}",
        f"<summary>\n{SUMMARY}\n</summary>\n<== {LABEL}"[:60],
    ]
    assert_sendable(runtime.conversation.log.path_entries())
    assert b"Look at b.py." in lines_of(runtime), "the file holds everything"


async def test_the_summary_is_asked_of_the_present_model_in_plain_words(stage: Stage):
    model = Model(Reply(tool_calls=(call("c1", "ls", path="."),)))
    runtime = stage.runtime(model.provider)
    await collect(run_loop(runtime, PLAN))
    (asked,) = model.summaries
    assert asked.model == runtime.conversation.model
    assert asked.tools == ()
    text = asked.messages[0].text
    said = "[User]: Round 2: b.py\n\n[User]: Look at b.py.\n\n[Assistant]: I looked at every"
    assert said in text
    assert '[Assistant calls]: ls path="."' in text
    assert "==>" not in text
    assert "State the outcome" in text


async def test_a_focus_replaces_the_default_wording(stage: Stage):
    model = Model()
    runtime = stage.runtime(model.provider)
    await collect(run_loop(runtime, dataclasses.replace(PLAN, focus="which rules are met")))
    text = model.summaries[0].messages[0].text
    assert "<focus>\nwhich rules are met\n</focus>" in text
    assert "State the outcome" not in text


async def test_without_compress_everything_stays(stage: Stage):
    model = Model()
    runtime = stage.runtime(model.provider)
    events = await collect(run_loop(runtime, LoopPlan("Again.", 2)))
    assert only(events, ScopeLeft).summary == ""
    assert model.summaries == []
    texts = seen(runtime)
    assert texts.count("Again.") == 2
    assert (texts[0], texts[-1]) == ("==> loop 2x: Again.", "<== loop 2x: Again.")


async def test_an_empty_loop_asks_nobody_and_writes_nothing(stage: Stage):
    model = Model()
    runtime = stage.runtime(model.provider)
    events = await collect(run_loop(runtime, LoopPlan("Again.", 0, is_compressed=True)))
    assert "no rounds" in only(events, Notice).text
    assert model.provider.requests == []
    assert runtime.conversation.log.path_entries() == ()


async def test_undoing_brings_the_very_same_context_back(stage: Stage):
    runtime = stage.runtime(Model().provider)
    await collect(runtime.submit("Hello."))
    await collect(run_loop(runtime, PLAN))
    (pending,) = [
        e for e in runtime.conversation.log.path_entries() if isinstance(mark_of(e), ScopePending)
    ]
    before = runtime.conversation.log.path_entries()[
        : runtime.conversation.log.path_entries().index(pending) + 1
    ]
    assert context_bytes(runtime.conversation.log.path_entries()) != context_bytes(before)
    await undo_compaction(runtime)
    assert context_bytes(runtime.conversation.log.path_entries()) == context_bytes(before)
    assert scope_state(runtime.conversation.log.path_entries()) == ScopeState()
    with pytest.raises(AgentTuiError, match="Nothing to undo"):
        await undo_compaction(runtime)


async def test_the_next_round_of_a_loop_sees_the_ones_before(stage: Stage):
    model = Model()
    runtime = stage.runtime(model.provider)
    await collect(run_loop(runtime, PLAN))
    assert [message.text[:12] for message in model.turns[1].messages] == [
        "==> loop 3x:",
        "Look at a.py",
        LONG[:12],
        "Look at b.py",
    ]


async def test_the_model_can_break_out_and_the_loop_is_summed_up_all_the_same(stage: Stage):
    model = Model(Reply(text=LONG), Reply(tool_calls=(call("c1", "scope", action="break"),)))
    runtime = stage.runtime(model.provider)
    events = await collect(run_loop(runtime, PLAN))
    assert len(of_kind(events, LoopAdvanced)) == 2
    assert only(events, ScopeLeft).summary == SUMMARY
    (left,) = [
        mark
        for e in runtime.conversation.log.path_entries()
        if isinstance(mark := mark_of(e), ScopeExit)
    ]
    assert left.ending == "break"
    assert_sendable(runtime.conversation.log.path_entries())


@pytest.mark.parametrize("second", [(broken(),), (Reply(text="Half", finish="length"),) * 4])
async def test_a_round_that_fails_ends_the_loop_and_nothing_is_summed_up(
    stage: Stage, second: tuple[Reply, ...]
):
    model = Model(Reply(text=LONG), *second)
    runtime = stage.runtime(model.provider)
    events = await collect(run_loop(runtime, PLAN))
    ending = only(events, TurnFinished)
    assert ending.outcome in ("error", "length")
    assert ending.can_continue
    assert "stopped in round 2 of 3. The other rounds" in of_kind(events, Notice)[-1].text
    assert only(events, ScopeLeft).summary == ""
    assert model.summaries == []
    assert "Look at a.py." in seen(runtime)
    again = await collect(runtime.continue_turn())
    assert only(again, TurnFinished).outcome == "done"
    assert not of_kind(again, LoopAdvanced)


async def cancelled_at(
    runtime: AgentRuntime, plan: LoopPlan, is_there: Callable[[AgentEvent], bool]
) -> list[AgentEvent]:
    """The events of a loop that is aborted at the first for which `is_there` holds."""
    events: list[AgentEvent] = []
    async for event in run_loop(runtime, plan):
        events.append(event)
        if is_there(event):
            runtime.abort()
    return events


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_esc_in_a_round_drops_the_rest_and_says_so(stage: Stage, number: int):
    model = Model()
    runtime = stage.runtime(model.provider)
    started = iter(range(1, 9))
    events = await cancelled_at(
        runtime, PLAN, lambda e: isinstance(e, ReplyStarted) and next(started) == number
    )
    assert only(events, TurnFinished).outcome == "aborted"
    assert f"stopped in round {number} of 3" in only(events, Notice).text
    assert len(of_kind(events, LoopAdvanced)) == number
    assert model.summaries == []
    assert scope_state(runtime.conversation.log.path_entries()) == ScopeState()
    assert_sendable(runtime.conversation.log.path_entries())
    assert not runtime.is_busy


async def test_esc_while_it_is_summed_up_changes_nothing_and_retry_does_it(stage: Stage):
    model = Model(summaries=(Reply(text=SUMMARY, gate=asyncio.Event()),))
    runtime = stage.runtime(model.provider)
    events = await cancelled_at(
        runtime, PLAN, lambda e: isinstance(e, ScopeProgress) and e.summary_chars > 0
    )
    assert only(events, TurnFinished) == TurnFinished("aborted", can_continue=True)
    assert "/retry summarises it" in only(events, Notice).text
    assert "Look at a.py." in seen(runtime)
    again = await collect(runtime.continue_turn())
    assert only(again, ScopeLeft).summary == SUMMARY
    assert only(again, TurnFinished) == TurnFinished("done")
    assert len(seen(runtime)) == 2
    assert len(model.turns) == 3, "nothing was left to do but the summary"


async def test_a_failed_summary_is_an_error_like_any_other_and_the_originals_stay(stage: Stage):
    model = Model(summaries=(broken(),))
    runtime = stage.runtime(model.provider)
    events = await collect(run_loop(runtime, PLAN))
    ending = only(events, TurnFinished)
    assert ending == TurnFinished("error", "The key is wrong.", can_continue=True)
    assert not of_kind(events, ScopeLeft)
    assert "Look at a.py." in seen(runtime)
    after = await collect(runtime.submit("Never mind."))
    assert only(after, ScopeLeft).summary == ""
    assert "Look at a.py." in seen(runtime)
    assert only(after, TurnFinished).outcome == "done"
    assert len(model.summaries) == 1


async def test_a_useless_summary_is_asked_for_once_more_then_given_up(stage: Stage):
    useless = (Reply(text=""), Reply(text="I'm sorry, I can't do that."))
    model = Model(summaries=useless)
    runtime = stage.runtime(model.provider)
    events = await collect(run_loop(runtime, PLAN))
    assert only(events, TurnFinished).error == "The summary was unusable: it was a refusal."
    assert "it was empty" in model.summaries[1].messages[0].text
    assert "Look at a.py." in seen(runtime)


async def test_a_crash_before_the_summary_is_offered_and_made_good(stage: Stage):
    runtime = stage.runtime(Model(summaries=(broken(),)).provider)
    await collect(run_loop(runtime, PLAN))
    await runtime.aclose()
    model = Model()
    again = stage.runtime(model.provider)
    opened = list(await again.sessions.open(str(runtime.conversation.log.path)))
    assert any(LABEL in e.text and "/retry" in e.text for e in of_kind(opened, Notice))
    events = await collect(again.continue_turn())
    assert only(events, ScopeLeft).summary == SUMMARY
    assert len(model.provider.requests) == 1
    assert len(seen(again)) == 2
    await again.aclose()
    assert again.conversation.log.path is not None
    with SessionLog.open(again.conversation.log.path, read_only=True) as log:
        assert context_bytes(log.path_entries()) == context_bytes(
            again.conversation.log.path_entries()
        )


async def test_a_crash_in_a_round_leaves_a_loop_that_the_next_message_ends(stage: Stage):
    runtime = stage.runtime(Model().provider)
    await collect(run_loop(runtime, PLAN))
    steps = [e.id for e in runtime.conversation.log.path_entries() if e.type == "custom"]
    await Branches(runtime).go_back(steps[1])  # the second round has just begun
    events = await collect(runtime.submit("What now?"))
    assert only(events, ScopeLeft) == ScopeLeft(only(events, ScopeLeft).entry_id, LABEL)
    assert scope_state(runtime.conversation.log.path_entries()) == ScopeState()
    assert seen(runtime)[-3:] == [f"<== {LABEL}"[:60], "What now?", LONG[:60]]


async def test_a_loop_that_was_running_at_a_crash_is_told_of_when_the_session_is_opened(
    stage: Stage,
):
    runtime = stage.runtime(Model().provider)
    await collect(run_loop(runtime, LoopPlan("Look at", 2, ("a.py", "b.py"))))
    steps = [e.id for e in runtime.conversation.log.path_entries() if e.type == "custom"]
    await runtime.aclose()
    file = runtime.conversation.log.path
    assert file is not None
    lines = file.read_text().splitlines(keepends=True)
    last = next(at for at, line in enumerate(lines) if f'"id":"{steps[1]}"' in line)
    file.write_text("".join(lines[: last + 1]))  # what a crash leaves
    again = stage.runtime(Model().provider)
    opened = list(await again.sessions.open(str(file)))
    told = [e.text for e in of_kind(opened, Notice)]
    assert any("loop 2x: Look at was interrupted in round 2 of 2 (b.py)" in text for text in told)
    await again.aclose()


async def test_a_new_loop_ends_one_that_was_broken_off(stage: Stage):
    runtime = stage.runtime(Model(summaries=(broken(),)).provider)
    await collect(run_loop(runtime, PLAN))
    events = await collect(run_loop(runtime, LoopPlan("Again.", 1)))
    assert [event.label for event in of_kind(events, ScopeLeft)] == [LABEL, "loop 1x: Again."]
    assert scope_state(runtime.conversation.log.path_entries()) == ScopeState()


async def test_a_summary_written_ahead_of_time_is_dropped_with_what_it_was_of(stage: Stage):
    runtime = stage.runtime(Model().provider)
    talk(runtime.conversation.log, 13)
    request = await runtime._compactor()._request("")
    ahead = runtime._background
    ahead.begin(request, lambda _usage: None)
    assert ahead.is_there
    await collect(run_loop(runtime, PLAN))
    assert not ahead.is_there


async def test_what_is_smaller_than_a_summary_stays_and_nobody_is_asked(stage: Stage):
    model = Model(Reply(text="Yes."))
    runtime = stage.runtime(model.provider)
    events = await collect(run_loop(runtime, LoopPlan("Ok?", 1, is_compressed=True)))
    assert only(events, TurnFinished).outcome == "done"
    assert only(events, ScopeLeft).summary == ""
    assert model.summaries == []


async def test_what_the_person_laid_down_in_a_loop_outlives_it(stage: Stage):
    runtime = stage.runtime(Model().provider)
    await collect(
        run_loop(runtime, dataclasses.replace(PLAN, prompt="Never touch {item}, I said."))
    )
    assert "Never touch b.py, I said." in runtime.conversation.request().messages[-1].text


async def test_summaries_are_paid_for_and_the_bar_drops_at_once(stage: Stage):
    used = Usage(input=700, output=30, total_tokens=730)
    model = Model(summaries=(Reply(text=SUMMARY, usage=used),))
    runtime = stage.runtime(model.provider)
    events = await collect(run_loop(runtime, PLAN))
    assert runtime.conversation.totals.input_tokens >= 700
    assert of_kind(events, ContextChanged)[-1].usage == runtime.conversation.usage
    assert runtime.conversation.usage.is_estimate


@pytest.mark.thorough
async def test_the_scripted_tour_can_be_looped_over_too(stage: Stage):
    runtime = stage.runtime(demo_reply)
    plan = LoopPlan("What can you do with {item}?", 4, ("a", "b", "c", "d"), is_compressed=True)
    events = await collect(run_loop(runtime, plan))
    assert "no model wrote this summary" in only(events, ScopeLeft).summary


async def test_an_export_shows_the_marks_the_summary_and_all_that_was_said(stage: Stage):
    runtime = stage.runtime(Model().provider)
    await collect(run_loop(runtime, PLAN))
    text = export_text(runtime.conversation.log, MARKDOWN, ())
    places = [
        text.index(part) for part in (f"==> {LABEL}", "Look at b.py.", f"<== {LABEL}", SUMMARY)
    ]
    assert places == sorted(places)


async def test_two_things_at_once_are_refused(stage: Stage):
    gate = asyncio.Event()
    runtime = stage.runtime(Model(Reply(text="So", gate=gate)).provider)
    events = run_loop(runtime, PLAN)
    await anext(events)
    with pytest.raises(AgentTuiError, match="already running"):
        await collect(run_loop(runtime, PLAN))
    await events.aclose()
    assert scope_state(runtime.conversation.log.path_entries()) == ScopeState()


@each_row(
    ("text", "plan"),
    [
        ("3 fix one", LoopPlan("fix one", 3)),
        ("3x fix one", LoopPlan("fix one", 3)),
        ("0 fix one", LoopPlan("fix one", 0)),
        ("over a.py,b.py look", LoopPlan("look", 2, ("a.py", "b.py"))),
        ("over a.py, b.py look", LoopPlan("look", 2, ("a.py", "b.py"))),
        ('over "a b","c,d" look', LoopPlan("look", 2, ("a b", "c,d"))),
        ("2 compress fix", LoopPlan("fix", 2, is_compressed=True)),
        ('2 compress["the rules"] fix', LoopPlan("fix", 2, is_compressed=True, focus="the rules")),
        ('2 compress("the rules") fix', LoopPlan("fix", 2, is_compressed=True, focus="the rules")),
        ("2 compress(rules) fix", LoopPlan("fix", 2, is_compressed=True, focus="rules")),
        ('2 compress("f(x) [1]") fix', LoopPlan("fix", 2, is_compressed=True, focus="f(x) [1]")),
        ("2 compress() fix", LoopPlan("fix", 2, is_compressed=True)),
        ('2 compress "the rules" fix', LoopPlan("fix", 2, is_compressed=True, focus="the rules")),
        ('2 compress"the rules" fix', LoopPlan("fix", 2, is_compressed=True, focus="the rules")),
        ("2 compressing is fun", LoopPlan("compressing is fun", 2)),
        ("over a compress\nfix\nit", LoopPlan("fix\nit", 1, ("a",), is_compressed=True)),
    ],
)
def test_the_ways_to_write_a_loop(text: str, plan: LoopPlan):
    assert parse_loop(text) == plan


@each_row("text", ["", "fix", "3", "3 compress", "over a,b", "1001 fix", "-1 fix"])
def test_what_is_no_loop_is_explained(text: str):
    with pytest.raises(AgentTuiError) as caught:
        parse_loop(text)
    assert str(caught.value)


def test_an_item_goes_where_it_is_wanted_or_to_the_end():
    items = ("a.py", "b.py")
    assert LoopPlan("read {item}, then {item}", 2, items).message(2) == "read b.py, then b.py"
    assert LoopPlan("read", 2, items).message(1) == "read a.py"
    assert LoopPlan("read {item}", 2).message(1) == "read {item}"
