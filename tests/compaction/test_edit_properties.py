"""What must hold of every planner of edits, whatever the session is and wherever the target lies.

The subjects are the tiers and the strategy `hybrid`; what is true of one alone stands beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pytest
from hypothesis import strategies as st

from agent_tui.compaction.outcome import Outcome
from agent_tui.errors import NothingToCompactError
from agent_tui.messages import UserMessage
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import EditReport, newest_change, report_entry, undo_mark
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import edited, size
from tests.compaction.tiers import planning as tiers
from tests.compaction.tiers.planning import Tier, text_of
from tests.compaction.writer import Writer
from tests.features.strategies.hybrid import scene as hybrid
from tests.features.strategies.hybrid.scene import shortened
from tests.support.context_checks import assert_sendable, context_bytes
from tests.support.drawn_history import RULES
from tests.support.histories import SOME_OR_ALL, changed_histories, for_every, histories
from tests.support.session_values import header

SLACK_TOKENS = 2
"""A call id that the context had to change can move where a long text is sliced for counting."""

OVERHEAD = 70


Planner: TypeAlias = Callable[["Case", TokenCounter], Outcome]


@dataclass(frozen=True)
class Case:
    """A session and how far to go with it; `hybrid` has a model above the lowest tier."""

    path: tuple[Entry, ...] = field(repr=False)
    target: int
    up_to: Tier


def by_tiers(case: Case, counter: TokenCounter) -> Outcome:
    return tiers.planned(
        case.path, counter, target=case.target, up_to=case.up_to, overhead=OVERHEAD
    )


def by_hybrid(case: Case, counter: TokenCounter) -> Outcome:
    """The plan, which has no edits where the strategy says that there is nothing to do."""
    writer = Writer([shortened]) if case.up_to > 0 else None
    try:
        return hybrid.planned(
            case.path, counter, target=case.target, writer=writer, overhead=OVERHEAD
        )
    except NothingToCompactError:
        before = size(case.path, counter) + OVERHEAD
        return Outcome((), before, before, {})


PATHS = st.one_of(changed_histories(), histories())
TARGETS = st.sampled_from([1, 200, 1_000, 5_000, 50_000])
TIERS: st.SearchStrategy[Tier] = st.sampled_from([0, 1, 2])
CASES = st.tuples(PATHS, TARGETS, TIERS).map(lambda drawn: Case(*drawn))

every_planner = pytest.mark.parametrize(
    "planned", [pytest.param(by_tiers, id="tiers"), pytest.param(by_hybrid, id="hybrid")]
)


@every_planner
@SOME_OR_ALL
def test_what_is_left_can_be_sent_is_as_small_as_the_plan_says_and_stays_as_it_is(
    examples: int, planned: Planner, counter: TokenCounter
) -> None:
    def check(case: Case) -> None:
        plan = planned(case, counter)
        after = edited(case.path, plan)
        assert_sendable(after)
        assert plan.tokens_before == size(case.path, counter) + OVERHEAD
        assert plan.tokens_after == pytest.approx(size(after, counter) + OVERHEAD, abs=SLACK_TOKENS)
        assert not plan.edits or plan.tokens_after < plan.tokens_before
        again = planned(replace(case, path=after), counter)
        assert again.edits == ()
        assert again.tokens_before == pytest.approx(plan.tokens_after, abs=SLACK_TOKENS)

    for_every(CASES, examples, check)


@every_planner
@SOME_OR_ALL
def test_a_batch_that_is_taken_back_leaves_the_context_byte_for_byte_what_it_was(
    examples: int, planned: Planner, counter: TokenCounter
) -> None:
    def check(case: Case) -> None:
        plan = planned(case, counter)
        edits = plan.edits
        assert len({edit.batch for edit in edits}) <= 1
        assert len({edit.target_id for edit in edits}) == len(edits)
        if edits:
            after = edited(case.path, plan)
            newest = newest_change(after)
            assert newest == tuple(entry.id for entry in after[len(case.path) :])
            assert context_bytes((*after, undo_mark(newest))) == context_bytes(case.path)

    for_every(CASES, examples, check)


@every_planner
@SOME_OR_ALL
def test_a_resumed_session_shows_what_the_live_one_did_and_can_be_taken_back_too(
    examples: int,
    planned: Planner,
    counter: TokenCounter,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = tmp_path_factory.mktemp("sessions") / "session.jsonl"

    def check(case: Case) -> None:
        file.unlink(missing_ok=True)
        with SessionLog.write(file, header(), case.path, "none") as log:
            stored = log.path_entries()
            edits = planned(replace(case, path=stored), counter).edits
            if not edits:
                return
            log.append_many((*edits, report_entry(EditReport(batch=edits[0].batch))))
            live = context_bytes(log.path_entries())
            taken_back = (*log.path_entries(), undo_mark(newest_change(log.path_entries())))
            assert context_bytes(taken_back) == context_bytes(stored)
        with SessionLog.open(file, "none") as log:
            assert context_bytes(log.path_entries()) == live
            assert planned(replace(case, path=log.path_entries()), counter).edits == ()

    for_every(CASES, examples, check)


@every_planner
@SOME_OR_ALL
def test_what_a_person_wrote_keeps_its_rules_word_for_word(
    examples: int, planned: Planner, counter: TokenCounter
) -> None:
    def check(case: Case) -> None:
        after = edited(case.path, planned(case, counter))
        for entry_id in _said(case.path):
            before = text_of(case.path, entry_id)
            assert all(rule in text_of(after, entry_id) for rule in RULES if rule in before)

    for_every(CASES, examples, check)


def _said(path: Sequence[Entry]) -> list[str]:
    """Ids of what a person wrote; some programs record results as messages of the person's."""
    return [
        entry.id
        for entry in path
        if isinstance(entry, MessageEntry)
        and isinstance(entry.message, UserMessage)
        and not entry.message.text.startswith("<returncode>")
    ]
