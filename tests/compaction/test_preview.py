"""What a preview promises is what a compaction then does."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.compaction.outcome import SUMMARY_TIER, CompactionPreview
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.request import CompactionRequest, ContextSizes
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.sessions.entries import Entry
from agent_tui.tokens import TokenCounter
from tests.compaction.tiers.planning import SMALL, WINDOW, planned
from tests.support.talk import Talk

OVERHEAD = 1_500


class NoModels:
    def info(self, ref: ModelRef) -> ModelInfo:
        return ModelInfo(ref.name, WINDOW, 1_000)

    def resolve(self, name: str) -> ModelRef:
        return ModelRef(name)

    def cheap_model(self, ref: ModelRef) -> ModelRef | None:
        return None


def request_for(path: tuple[Entry, ...], tokens_before: int, target: int) -> CompactionRequest:
    return CompactionRequest(
        path=path,
        previous=None,
        model=ModelRef("scripted/one"),
        cwd=Path("/project"),
        settings=SMALL,
        sizes=ContextSizes(window=WINDOW, used=tokens_before, overhead=OVERHEAD, target=target),
    )


def preview(
    path: tuple[Entry, ...], counter: TokenCounter, *, target: int, tokens_before: int = 0
) -> CompactionPreview:
    planner = CompactionPlanner(None, counter, NoModels())
    return asyncio.run(planner.preview(request_for(path, tokens_before, target), "tiered"))


def tokens_left(path: tuple[Entry, ...], counter: TokenCounter, target: int) -> int:
    """What an automatic compaction by edits leaves."""
    plan = planned(path, counter, target=target, settings=SMALL, overhead=OVERHEAD)
    return plan.tokens_after


def work(rounds: int, lines: int = 150) -> Talk:
    talk = Talk()
    talk.user("Read all the files. Never touch vendor/.")
    for number in range(rounds):
        text = "".join(f"file {number} line {line}\n" for line in range(lines))
        talk.tool("read", {"path": f"src/file{number}.py"}, text)
    talk.reply("All are read.")
    return talk


def used(found: CompactionPreview) -> list[int]:
    return sorted(found.messages)


def test_where_the_tiers_reach_the_target_they_are_what_would_be_done(counter: TokenCounter):
    path = work(20).path
    target = preview(path, counter, target=40_000).tokens_before * 4 // 5
    found = preview(path, counter, target=target)
    assert found.tokens_after == tokens_left(path, counter, target) <= target
    assert SUMMARY_TIER not in used(found)
    assert used(found)


def test_where_the_tiers_do_not_reach_it_a_summary_would_be_made(counter: TokenCounter):
    talk = Talk()
    for number in range(20):
        talk.user(f"Question {number}. " + "Please look closely. " * 60)
        talk.reply(f"Answer {number}. " + "I looked closely. " * 60)
    found = preview(talk.path, counter, target=3_000)
    assert used(found) == [SUMMARY_TIER]
    assert found.compact_tokens is not None
    assert found.tokens_after == found.compact_tokens < found.tokens_before
    assert found.freed == {SUMMARY_TIER: found.tokens_before - found.tokens_after}


def test_where_there_can_be_no_summary_the_tiers_do_what_they_can(counter: TokenCounter):
    talk = Talk()
    talk.bash("make", "one line of many\n" * 2_000)
    talk.user("What does it say?")
    path = talk.path
    found = preview(path, counter, target=1)
    assert "Nothing to compact" in found.problem
    assert found.tokens_after == tokens_left(path, counter, 1) < found.tokens_before
    assert used(found)


def test_nothing_is_promised_of_what_no_compaction_would_touch(counter: TokenCounter):
    """The newest outputs are shortened only where they alone are over the target."""
    talk = work(12)
    talk.user("And the last one?")
    talk.tool("read", {"path": "big.py"}, "the newest output of all\n" * 900)
    newest = counter.count_text("the newest output of all\n" * 900)
    before = preview(talk.path, counter, target=90_000).tokens_before
    found = preview(talk.path, counter, target=before * 4 // 5)
    assert SUMMARY_TIER not in used(found)
    assert found.tokens_after > newest + OVERHEAD


def test_right_after_a_compaction_another_one_frees_nothing(counter: TokenCounter):
    talk = work(20)
    assert preview(talk.path, counter, target=40_000).compact_tokens is not None
    talk.compaction("Notes that a model wrote. " * 400)
    talk.user("Go on.")
    talk.reply("I go on.")
    found = preview(talk.path, counter, target=40_000)
    assert found.compact_tokens in (None, found.tokens_before)
    larger = preview(talk.path, counter, target=2_000)
    assert larger.compact_tokens is not None
    assert larger.compact_tokens < larger.tokens_before


def test_an_empty_session_has_nothing_to_show(counter: TokenCounter):
    found = preview((), counter, target=40_000)
    assert found.tokens_before == found.tokens_after == OVERHEAD
    assert found.compact_tokens is None
    assert used(found) == []
    assert "Nothing to compact" in found.problem


def test_below_the_target_nothing_would_be_done(counter: TokenCounter):
    found = preview(work(20).path, counter, target=90_000)
    assert used(found) == []
    assert found.tokens_after == found.tokens_before < found.target_tokens


def test_what_is_pinned_is_told(counter: TokenCounter):
    found = preview(work(3).path, counter, target=40_000)
    assert found.ledger.pinned == ("Never touch vendor/.",)


def test_sizes_are_in_the_providers_tokens(counter: TokenCounter):
    path = work(20).path
    ours = preview(path, counter, target=9_000)
    theirs = preview(path, counter, target=9_000, tokens_before=2 * ours.tokens_before)
    assert theirs.tokens_before == 2 * ours.tokens_before
    assert theirs.tokens_after == 2 * ours.tokens_after
    assert theirs.window == 2 * ours.window
    assert theirs.target_tokens == 2 * ours.target_tokens
    assert ours.compact_tokens is not None
    assert theirs.compact_tokens == 2 * ours.compact_tokens
    assert theirs.messages == ours.messages
    assert theirs.freed == {tier: 2 * tokens for tier, tokens in ours.freed.items()}


def test_nothing_is_written(counter: TokenCounter):
    path = work(5).path
    before = tuple(entry.model_copy(deep=True) for entry in path)
    preview(path, counter, target=1_000)
    assert path == before


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(min_value=0, max_value=400), max_size=12),
    target=st.integers(min_value=1, max_value=20_000),
)
def test_rows_add_up_and_the_outcome_is_the_real_one(
    counter: TokenCounter, sizes: list[int], target: int
):
    talk = Talk()
    for number, lines in enumerate(sizes):
        talk.user(f"Make part {number}.")
        talk.tool("bash", {"command": f"make {number}"}, f"made {number}\n" * lines)
    found = preview(talk.path, counter, target=target)
    assert set(found.freed) <= set(found.messages)
    assert found.tokens_before - sum(found.freed.values()) == found.tokens_after
    if SUMMARY_TIER not in used(found):
        assert found.tokens_after == tokens_left(talk.path, counter, target)
    assert found.tokens_after <= found.tokens_before


@pytest.mark.parametrize("rounds", [1, 400])
def test_a_session_of_any_size_can_be_looked_at(counter: TokenCounter, rounds: int):
    found = preview(work(rounds, lines=40).path, counter, target=2_000)
    assert found.tokens_after <= found.tokens_before
