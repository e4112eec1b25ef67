"""What must hold of the tiers beside what holds of every planner of edits."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from agent_tui.compaction.outcome import Outcome
from agent_tui.messages import AssistantMessage, ThinkingContent, UserMessage
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import edited
from tests.compaction.tiers.planning import Tier, messages, planned, protected_ids
from tests.support.histories import (
    SOME_OR_ALL,
    changed_histories,
    for_every,
    histories,
)

PATHS = st.one_of(changed_histories(), histories())
TIERS: st.SearchStrategy[Tier] = st.sampled_from([0, 1, 2])
TARGETS = st.sampled_from([0, 200, 1_000, 5_000, 50_000])


@dataclass(frozen=True)
class Case:
    """A session and how far to go with it."""

    path: tuple[Entry, ...] = field(repr=False)
    target: int
    up_to: Tier

    def plan(self, counter: TokenCounter, overhead: int = 0) -> Outcome:
        return planned(self.path, counter, target=self.target, up_to=self.up_to, overhead=overhead)


CASES = st.tuples(PATHS, TARGETS, TIERS).map(lambda drawn: Case(*drawn))


@SOME_OR_ALL
def test_the_plan_says_what_each_tier_frees_and_makes_no_message_larger(
    examples: int, counter: TokenCounter
) -> None:
    def check(case: Case) -> None:
        plan = case.plan(counter, overhead=70)
        after = edited(case.path, plan)
        assert plan.tokens_before - plan.tokens_after == sum(plan.freed.values())
        assert all(freed > 0 for freed in plan.freed.values())
        assert all(tier <= case.up_to for tier in plan.freed)
        size_of, left_of = _sizes(case.path, counter), _sizes(after, counter)
        for edit in plan.edits:
            assert left_of.get(edit.target_id, 0) < size_of[edit.target_id]

    for_every(CASES, examples, check)


@SOME_OR_ALL
def test_nothing_is_done_where_the_target_is_met(examples: int, counter: TokenCounter) -> None:
    def check(case: Case) -> None:
        plan = case.plan(counter)
        if plan.tokens_before <= case.target:
            assert plan.edits == ()

    for_every(CASES, examples, check)


@SOME_OR_ALL
def test_protected_messages_stay_byte_for_byte_unless_they_alone_are_too_much(
    examples: int, counter: TokenCounter
) -> None:
    def check(case: Case) -> None:
        plan = case.plan(counter)
        protected = protected_ids(case.path, counter)
        assert protected or not plan.edits
        touched = {edit.target_id: edit for edit in plan.edits}
        left = _sizes(case.path, counter)
        if sum(left.get(entry_id, 0) for entry_id in protected) <= case.target:
            assert protected.isdisjoint(touched)
            return
        results = {
            entry.id
            for entry in case.path
            if isinstance(entry, MessageEntry) and not isinstance(entry.message, AssistantMessage)
        }
        for entry_id in protected.intersection(touched):
            assert touched[entry_id].tier == 1
            assert entry_id in results

    for_every(CASES, examples, check)


@SOME_OR_ALL
def test_only_protected_replies_keep_their_thinking(examples: int, counter: TokenCounter) -> None:
    def check(path: tuple[Entry, ...]) -> None:
        protected = protected_ids(path, counter)
        for item in build_context(edited(path, planned(path, counter))).messages:
            if isinstance(item.message, AssistantMessage) and item.entry_id not in protected:
                thoughts = [p for p in item.message.content if isinstance(p, ThinkingContent)]
                assert not any(thought.thinking for thought in thoughts)

    for_every(PATHS, examples, check)


@SOME_OR_ALL
def test_calls_keep_their_ids_names_keys_and_kinds_of_values(
    examples: int, counter: TokenCounter
) -> None:
    def check(case: Case) -> None:
        before = [m for m in messages(case.path) if isinstance(m, AssistantMessage)]
        after = [
            m
            for m in messages(edited(case.path, case.plan(counter)))
            if isinstance(m, AssistantMessage)
        ]
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            for call, kept in zip(old.tool_calls, new.tool_calls, strict=True):
                assert (call.id, call.name) == (kept.id, kept.name)
                assert {k: type(v) for k, v in call.arguments.items()} == {
                    k: type(v) for k, v in kept.arguments.items()
                }

    for_every(CASES, examples, check)


@SOME_OR_ALL
def test_what_a_person_wrote_is_never_described(examples: int, counter: TokenCounter) -> None:
    def check(case: Case) -> None:
        plan = case.plan(counter)
        said = {
            entry.id
            for entry in case.path
            if isinstance(entry, MessageEntry)
            and isinstance(entry.message, UserMessage)
            and not entry.message.text.startswith("<returncode>")
        }
        assert all(edit.tier < 2 for edit in plan.edits if edit.target_id in said)

    for_every(CASES, examples, check)


def _sizes(path: Sequence[Entry], counter: TokenCounter) -> dict[str, int]:
    """Tokens of each entry's message; a result made up for a lost one counts for nobody."""
    kinds = {e.id: type(e.message) for e in path if isinstance(e, MessageEntry)}
    return {
        item.entry_id: counter.count_message(item.message)
        for item in build_context(path).messages
        if kinds.get(item.entry_id, type(item.message)) is type(item.message)
    }
