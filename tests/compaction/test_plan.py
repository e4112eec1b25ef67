from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings

from agent_tui.compaction.plan import CompactionPlan, live_entries, plan_compaction
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.messages import AssistantMessage, Message, ToolCall, ToolResultMessage
from agent_tui.sessions.entries import (
    Carryover,
    ContextEditEntry,
    Entry,
    Ledger,
    MessageEntry,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.tokens import TokenCounter
from tests.support.histories import histories
from tests.support.talk import Talk
from tests.support.trajectories import trajectory

WINDOW = 100_000


def plan(
    path: Sequence[Entry],
    counter: TokenCounter,
    *,
    keep_recent: int = 0,
    protected: int = 12,
    window: int = WINDOW,
    previous: Carryover | None = None,
) -> CompactionPlan:
    return plan_compaction(
        path,
        previous=previous,
        counter=counter,
        settings=CompactionSettings(keep_recent_tokens=keep_recent, protected_messages=protected),
        window=window,
    )


def unpaired(messages: Sequence[Message]) -> tuple[set[str], set[str]]:
    """Ids of calls without a result and of results without a call."""
    calls = {c.id for m in messages if isinstance(m, AssistantMessage) for c in m.tool_calls}
    results = {m.tool_call_id for m in messages if isinstance(m, ToolResultMessage)}
    return calls - results, results - calls


def conversation(turns: int, words: int = 50) -> Talk:
    talk = Talk()
    for number in range(turns):
        talk.user(f"question {number} " + "word " * words)
        talk.tool("read", {"path": f"src/f{number}.py"}, "line " * words)
        talk.reply(f"answer {number} " + "word " * words)
    return talk


def test_the_longest_end_that_fits_is_kept(counter: TokenCounter):
    talk = conversation(20)
    cut = plan(talk.path, counter, keep_recent=800)
    assert 400 <= cut.kept_tokens <= 800
    assert cut.kept_entries == talk.path[-len(cut.kept_entries) :]
    assert cut.first_kept_entry_id == cut.kept_entries[0].id
    assert len(cut.summarised) + len(cut.kept) == len(talk.path)


def test_a_cut_prefers_the_start_of_a_turn(counter: TokenCounter):
    talk = conversation(20)
    for keep_recent in range(400, 1_600, 97):
        cut = plan(talk.path, counter, keep_recent=keep_recent)
        assert not cut.splits_turn


def test_the_second_compaction_starts_at_the_first_ones_kept_entry(counter: TokenCounter):
    talk = conversation(10)
    kept = talk.entries[-4]
    talk.compaction("first summary", kept.id)
    before = len(talk.entries)
    for number in range(10):
        talk.user(f"later {number} " + "word " * 50)
        talk.reply("word " * 50)
    cut = plan(talk.path, counter, keep_recent=300)
    assert cut.summarised[0].entry_id == kept.id
    assert [m.entry_id for m in cut.summarised[:4]] == [
        e.id for e in talk.entries[before - 5 : before - 1]
    ]
    assert cut.previous_summary == "first summary"


def test_in_a_child_session_everything_after_the_compaction_is_live(counter: TokenCounter):
    talk = Talk()
    talk.compaction("from the parent")
    first = talk.user("copied question " * 30)
    talk.entries[0] = talk.entries[0].model_copy(update={"first_kept_entry_id": first.id})
    for _ in range(6):
        talk.reply("answer " * 60)
        talk.user("next " * 60)
    cut = plan(talk.path, counter, keep_recent=200)
    assert cut.summarised[0].entry_id == first.id
    assert cut.previous_summary == "from the parent"


def test_the_parents_summary_counts_while_there_is_no_compaction_entry(counter: TokenCounter):
    cut = plan(conversation(4).path, counter, previous=Carryover(lastSummary="carried"))
    assert cut.previous_summary == "carried"


@pytest.mark.parametrize("texts", [[], ["hello"]])
def test_less_than_one_exchange_is_refused(counter: TokenCounter, texts: list[str]):
    talk = Talk()
    for text in texts:
        talk.user(text)
    with pytest.raises(CompactionError, match="Nothing to compact"):
        plan(talk.path, counter)


def test_a_request_too_large_to_be_answered_can_be_compacted(counter: TokenCounter):
    talk = Talk()
    talk.user("look at this: " + "word " * 1_000)
    with pytest.raises(CompactionError, match="Nothing to compact"):
        plan(talk.path, counter, window=4_000)
    cut = plan(talk.path, counter, window=1_800)
    assert cut.kept == ()
    assert cut.request.startswith("look at this:")


@pytest.mark.parametrize(("window", "most"), [(2_048, 204), (8_192, 1_433), (200_000, 20_000)])
def test_a_small_window_keeps_less_as_prompt_and_summary_take_their_part(
    counter: TokenCounter, window: int, most: int
):
    talk = conversation(400, words=30)
    kept = plan(talk.path, counter, window=window).kept_tokens
    assert most - 150 <= kept <= most


def test_what_the_model_just_asked_for_stays_where_it_fits(counter: TokenCounter):
    talk = conversation(3)
    talk.tool("read", {"path": "a"}, "line " * 650)
    cut = plan(talk.path, counter, window=2_048)
    assert len(cut.kept) == 2
    talk.tool("read", {"path": "b"}, "line " * 850)
    assert plan(talk.path, counter, window=2_048).kept == ()


def test_an_empty_failed_reply_is_no_exchange(counter: TokenCounter):
    talk = Talk()
    talk.user("hello")
    talk.reply("", stop="error")
    with pytest.raises(CompactionError, match="Nothing to compact"):
        plan(talk.path, counter)


def test_a_short_conversation_keeps_only_the_last_turn(counter: TokenCounter):
    talk = conversation(4)
    cut = plan(talk.path, counter)
    newest_user = talk.entries[-4]
    assert cut.first_kept_entry_id == newest_user.id
    assert not cut.splits_turn
    assert cut.request == ""


def test_a_middling_conversation_keeps_the_protected_messages(counter: TokenCounter):
    talk = conversation(10)
    cut = plan(talk.path, counter, protected=8)
    assert len(cut.kept) == 8


def test_a_single_exchange_keeps_the_last_reply(counter: TokenCounter):
    talk = conversation(1)
    cut = plan(talk.path, counter)
    assert cut.first_kept_entry_id == talk.entries[-1].id
    assert cut.splits_turn
    assert cut.request.startswith("question 0")


def test_a_giant_last_turn_is_cut_inside_and_its_request_is_kept_as_text(counter: TokenCounter):
    talk = conversation(2)
    talk.user("do the giant thing")
    for number in range(40):
        talk.tool("read", {"path": f"f{number}"}, "line " * 100)
    cut = plan(talk.path, counter, keep_recent=1_000)
    assert cut.splits_turn
    assert cut.request == "do the giant thing"
    assert cut.kept_tokens <= 1_000
    assert unpaired([m.message for m in cut.kept]) == (set(), set())


def test_a_turn_without_a_new_request_can_be_compacted_again(counter: TokenCounter):
    talk = conversation(1)
    kept = talk.reply("going on", ToolCall(id="k", name="read"))
    talk.result(ToolCall(id="k", name="read"))
    talk.compaction("so far", kept.id)
    for number in range(40):
        talk.tool("read", {"path": f"f{number}"}, "line " * 100)
    cut = plan(talk.path, counter, keep_recent=1_000)
    assert cut.summarised[0].entry_id == kept.id
    assert cut.request.startswith("question 0")


def test_in_a_child_without_the_request_it_comes_from_the_ledger(counter: TokenCounter):
    talk = Talk()
    talk.compaction("so far")
    for number in range(20):
        talk.tool("read", {"path": f"f{number}"}, "line " * 100)
    previous = Carryover(ledger=Ledger(user_messages=("the request", "an older one")))
    cut = plan(talk.path, counter, keep_recent=500, previous=previous)
    assert cut.request == "the request"


def test_a_last_message_larger_than_half_the_window_does_not_stay(counter: TokenCounter):
    talk = conversation(3)
    talk.user("see this: " + "word " * 8_000)
    cut = plan(talk.path, counter, window=8_000)
    assert cut.kept == ()
    assert cut.first_kept_entry_id == ""
    assert cut.request.startswith("see this:")


def test_parallel_calls_stay_with_all_their_results(counter: TokenCounter):
    talk = Talk()
    talk.user("go " * 200)
    for number in range(12):
        calls = [ToolCall(id=f"{number}-{n}", name="read") for n in range(3)]
        talk.reply("", *calls)
        for call in reversed(calls):
            talk.result(call, "line " * 40)
    for keep_recent in range(100, 1_500, 13):
        cut = plan(talk.path, counter, keep_recent=keep_recent)
        for side in (cut.summarised, cut.kept):
            assert unpaired([m.message for m in side]) == (set(), set())


def test_a_message_typed_while_a_tool_ran_is_no_place_to_cut(counter: TokenCounter):
    talk = conversation(2)
    call = ToolCall(id="slow", name="bash", arguments={"command": "make"})
    asked = talk.reply("", call)
    steered = talk.user("use make -j")
    talk.result(call, "built")
    end = counter.count_messages([steered.message]) + 20
    cut = plan(talk.path, counter, keep_recent=end)
    assert cut.first_kept_entry_id == asked.id


def test_edits_of_kept_messages_are_kept_with_them(counter: TokenCounter):
    talk = conversation(6)
    target, other = talk.entries[-2], talk.entries[1]
    edits = [
        ContextEditEntry(id="edit-1", target_id=target.id, replacement="short"),
        ContextEditEntry(id="edit-2", target_id=other.id, replacement="short"),
    ]
    path = (*talk.path, *edits)
    cut = plan(path, counter)
    assert edits[0] in cut.kept_entries
    assert edits[1] not in cut.kept_entries


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(path=histories())
def test_whatever_the_history_no_call_is_parted_from_its_result(
    counter: TokenCounter, path: tuple[Entry, ...]
):
    for keep_recent in (50, 500, 3_000):
        try:
            cut = plan(path, counter, keep_recent=keep_recent)
        except CompactionError:
            continue
        _check(cut, path)


def _check(cut: CompactionPlan, path: Sequence[Entry]) -> None:
    for side in (cut.summarised, cut.kept):
        assert unpaired([m.message for m in side]) == (set(), set())
    live = live_entries(path)
    kept = [e for e in cut.kept_entries if isinstance(e, MessageEntry)]
    assert kept == list(live[len(live) - len(kept) :])
    if kept:
        assert cut.first_kept_entry_id == kept[0].id
        assert kept[0].message.role in ("user", "assistant")
    assert cut.summarised


@pytest.mark.thorough
def test_every_cut_of_a_real_session_is_legal(counter: TokenCounter):
    with SessionLog.open(trajectory("pi/before-compaction.jsonl"), read_only=True) as log:
        path = log.path_entries()
    whole = [e for e in path if e.type != "compaction"]
    checked = 0
    for end in range(5, len(whole), 23):
        for keep_recent in (500, 4_000, 20_000):
            try:
                cut = plan(whole[:end], counter, keep_recent=keep_recent, window=200_000)
            except CompactionError:
                continue
            _check(cut, whole[:end])
            checked += 1
    assert checked > 100


def test_the_compactions_of_another_program_are_continued(counter: TokenCounter):
    with SessionLog.open(trajectory("pi/before-compaction.jsonl"), read_only=True) as log:
        path = log.path_entries()
    cut = plan(path, counter, window=200_000)
    assert cut.previous_summary.startswith("# Context Checkpoint")
    assert cut.summarised[0].entry_id == live_entries(path)[0].id
    _check(cut, path)
