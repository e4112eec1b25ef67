"""What must hold whatever the session is and wherever the target lies."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_tui.compaction.tiers.model import Tier
from agent_tui.messages import AssistantMessage, ThinkingContent, UserMessage
from agent_tui.providers.wire import anthropic_payload, openai_messages
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import ContextEditEntry, Entry, MessageEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.tokens import TokenCounter
from tests.compaction.tiers.planning import edited, messages, planned, protected_ids, size, text_of
from tests.compaction.tiers.sessions import rich_sessions
from tests.support.context_checks import assert_settled
from tests.support.histories import histories
from tests.support.session_values import header
from tests.support.wire_rules import anthropic_problems, openai_problems

PATHS = st.one_of(rich_sessions(), histories())
TIERS: st.SearchStrategy[Tier] = st.sampled_from([0, 1, 2])
TARGETS = st.sampled_from([0, 200, 1_000, 5_000, 50_000])

RULE = "Never touch the lock file."

generated = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@generated
@given(path=PATHS, target=TARGETS, up_to=TIERS)
def test_the_context_stays_one_that_every_service_takes(
    path: tuple[Entry, ...], target: int, up_to: Tier, counter: TokenCounter
) -> None:
    after = edited(path, planned(path, counter, target=target, up_to=up_to))
    assert_settled(build_context(after).messages)
    for model in ("", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro"):
        assert openai_problems(openai_messages("", messages(after), model=model)) == []
    assert anthropic_problems(anthropic_payload("", messages(after))) == []


@generated
@given(path=PATHS, target=TARGETS, up_to=TIERS)
def test_the_plan_says_what_it_frees_and_never_makes_anything_larger(
    path: tuple[Entry, ...], target: int, up_to: Tier, counter: TokenCounter
) -> None:
    plan = planned(path, counter, target=target, up_to=up_to, overhead=70)
    assert plan.tokens_before == size(path, counter) + 70
    assert plan.tokens_after == size(edited(path, plan), counter) + 70
    assert plan.tokens_before - plan.tokens_after == sum(plan.freed.values())
    assert all(freed > 0 for freed in plan.freed.values())
    assert all(tier <= up_to for tier in plan.freed)
    before, after = _sizes(path, counter), _sizes(edited(path, plan), counter)
    for edit in plan.edits:
        assert after.get(edit.target_id, 0) < before[edit.target_id]


@generated
@given(path=PATHS, target=TARGETS, up_to=TIERS)
def test_nothing_is_done_where_the_target_is_met_and_a_second_run_changes_nothing(
    path: tuple[Entry, ...], target: int, up_to: Tier, counter: TokenCounter
) -> None:
    plan = planned(path, counter, target=target, up_to=up_to)
    if plan.tokens_before <= target:
        assert plan.edits == ()
    again = planned(edited(path, plan), counter, target=target, up_to=up_to)
    assert again.edits == ()
    assert again.tokens_before == plan.tokens_after


@generated
@given(path=PATHS, target=TARGETS)
def test_without_the_edits_of_the_batch_the_context_is_byte_for_byte_what_it_was(
    path: tuple[Entry, ...], target: int, counter: TokenCounter
) -> None:
    plan = planned(path, counter, target=target)
    assert len({edit.batch for edit in plan.edits}) <= 1
    assert len({edit.target_id for edit in plan.edits}) == len(plan.edits)
    batch = {edit.batch for edit in plan.edits}
    undone = [
        entry
        for entry in edited(path, plan)
        if not (isinstance(entry, ContextEditEntry) and entry.batch in batch)
    ]
    assert _bytes(undone) == _bytes(path)


@generated
@given(path=PATHS, target=TARGETS)
def test_protected_messages_stay_byte_for_byte_unless_they_alone_are_too_much(
    path: tuple[Entry, ...], target: int, counter: TokenCounter
) -> None:
    plan = planned(path, counter, target=target)
    protected = protected_ids(path, counter)
    assert protected or not plan.edits
    touched = {edit.target_id: edit for edit in plan.edits}
    if not plan.protected_over_target:
        assert protected.isdisjoint(touched)
        return
    results = {
        entry.id
        for entry in path
        if isinstance(entry, MessageEntry) and not isinstance(entry.message, AssistantMessage)
    }
    for entry_id in protected.intersection(touched):
        assert touched[entry_id].tier == 1
        assert entry_id in results


@generated
@given(path=PATHS)
def test_only_protected_replies_keep_their_thinking(
    path: tuple[Entry, ...], counter: TokenCounter
) -> None:
    after = edited(path, planned(path, counter))
    protected = protected_ids(path, counter)
    for item in build_context(after).messages:
        if isinstance(item.message, AssistantMessage) and item.entry_id not in protected:
            thoughts = [p for p in item.message.content if isinstance(p, ThinkingContent)]
            assert not any(thought.thinking for thought in thoughts)


@generated
@given(path=PATHS, target=TARGETS)
def test_calls_keep_their_ids_names_keys_and_kinds_of_values(
    path: tuple[Entry, ...], target: int, counter: TokenCounter
) -> None:
    before = [m for m in messages(path) if isinstance(m, AssistantMessage)]
    after = [
        m
        for m in messages(edited(path, planned(path, counter, target=target)))
        if isinstance(m, AssistantMessage)
    ]
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        for call, kept in zip(old.tool_calls, new.tool_calls, strict=True):
            assert (call.id, call.name) == (kept.id, kept.name)
            assert {k: type(v) for k, v in call.arguments.items()} == {
                k: type(v) for k, v in kept.arguments.items()
            }


@generated
@given(path=PATHS, target=TARGETS)
def test_what_a_person_wrote_is_never_described_and_rules_stay_word_for_word(
    path: tuple[Entry, ...], target: int, counter: TokenCounter
) -> None:
    plan = planned(path, counter, target=target)
    said = {
        entry.id
        for entry in path
        if isinstance(entry, MessageEntry)
        and isinstance(entry.message, UserMessage)
        and not entry.message.text.startswith("<returncode>")
    }
    assert all(edit.tier < 2 for edit in plan.edits if edit.target_id in said)
    after = edited(path, plan)
    for entry_id in said:
        if RULE in text_of(path, entry_id):
            assert RULE in text_of(after, entry_id)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=rich_sessions(), target=TARGETS)
def test_a_resumed_session_sees_what_the_live_one_saw(
    path: tuple[Entry, ...],
    target: int,
    counter: TokenCounter,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file: Path = tmp_path_factory.mktemp("sessions") / "session.jsonl"
    with SessionLog.write(file, header(), path, "none") as log:
        log.append_many(planned(log.path_entries(), counter, target=target).edits)
        live = _bytes(log.path_entries())
    with SessionLog.open(file, "none") as log:
        assert _bytes(log.path_entries()) == live
        assert planned(log.path_entries(), counter, target=target).edits == ()


def _sizes(path: Sequence[Entry], counter: TokenCounter) -> dict[str, int]:
    """Tokens of each entry's message; a result made up for a lost one counts for nobody."""
    kinds = {e.id: type(e.message) for e in path if isinstance(e, MessageEntry)}
    return {
        item.entry_id: counter.count_message(item.message)
        for item in build_context(path).messages
        if kinds.get(item.entry_id, type(item.message)) is type(item.message)
    }


def _bytes(path: Sequence[Entry]) -> list[str]:
    return [item.entry_id + item.message.model_dump_json() for item in build_context(path).messages]
