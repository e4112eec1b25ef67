"""Where a conversation is cut, and what stays."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from agent_tui.compaction.draft import make_draft
from agent_tui.compaction.plan import (
    CompactionPlan,
    choose_cut,
    live_entries,
    plan_cut,
    previous_summary,
    read_live,
)
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.messages import AssistantMessage, Message, Pin, ToolCall, ToolResultMessage
from agent_tui.sessions.entries import Carryover, ContextEditEntry, Entry, MessageEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.pins import pin_entry, unpin_entry
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import request_for
from tests.support.histories import histories
from tests.support.talk import Talk
from tests.support.trajectories import trajectory

WINDOW = 100_000


def plan(
    path: Sequence[Entry], counter: TokenCounter, *, room: int, window: int = WINDOW
) -> CompactionPlan:
    """The cut with up to `room` tokens behind it."""
    live = read_live(path, counter)
    cut = choose_cut(live, live.tokens, room, window)
    return plan_cut(path, live, cut, {}, live.tokens)


def drafted(path: Sequence[Entry], counter: TokenCounter, *, window: int) -> CompactionPlan:
    """The cut that a compaction by code makes."""
    request = request_for(path, settings=CompactionSettings(), window=window)
    return make_draft(request, counter=counter).plan


def kept_messages(cut: CompactionPlan) -> list[MessageEntry]:
    return [entry for entry in cut.kept_entries if isinstance(entry, MessageEntry)]


def unpaired(messages: Sequence[Message]) -> tuple[set[str], set[str]]:
    """Ids of calls without a result and of results without a call."""
    calls = {c.id for m in messages if isinstance(m, AssistantMessage) for c in m.tool_calls}
    results = {m.tool_call_id for m in messages if isinstance(m, ToolResultMessage)}
    return calls - results, results - calls


def assert_paired(cut: CompactionPlan) -> None:
    """That no call is on one side and its result on the other."""
    old = [entry.message for entry in cut.summarised if isinstance(entry, MessageEntry)]
    kept = [entry.message for entry in kept_messages(cut)]
    (old_calls, old_results), (new_calls, new_results) = unpaired(old), unpaired(kept)
    assert not old_calls & new_results
    assert not new_calls & old_results


def conversation(turns: int, words: int = 50) -> Talk:
    talk = Talk()
    for number in range(turns):
        talk.user(f"question {number} " + "word " * words)
        talk.tool("read", {"path": f"src/f{number}.py"}, "line " * words)
        talk.reply(f"answer {number} " + "word " * words)
    return talk


def test_the_longest_end_that_fits_is_kept(counter: TokenCounter):
    talk = conversation(20)
    cut = plan(talk.path, counter, room=800)
    assert cut.kept_entries == talk.path[-len(cut.kept_entries) :]
    assert cut.first_kept_entry_id == cut.kept_entries[0].id
    assert (*cut.summarised, *cut.kept_entries) == talk.path
    live = read_live(talk.path, counter)
    at = len(cut.summarised)
    longer = max(place for place in live.cuts if place < at)
    assert cut.kept_tokens == sum(live.tokens[at:]) <= 800 < sum(live.tokens[longer:])


def test_sizes_of_both_sides_are_those_of_the_whole(counter: TokenCounter):
    talk = conversation(9)
    whole = sum(read_live(talk.path, counter).tokens)
    for room in (0, 300, 900):
        cut = plan(talk.path, counter, room=room)
        assert cut.summarised_tokens + cut.kept_tokens_now == whole


def test_a_pinned_text_that_was_taken_out_does_not_stay(counter: TokenCounter):
    talk = conversation(3)
    pin = Pin(kind="skill", name="house", path="/skills/house/SKILL.md", digest="0")
    gone = pin_entry(pin, "Rules.").model_copy(update={"id": "gone"})
    talk.entries += [gone, unpin_entry((pin.path,)).model_copy(update={"id": "unpin"})]
    talk.user("go on")
    cut = plan(talk.path, counter, room=10_000)
    assert talk.entries[-1] in cut.kept_entries
    assert gone not in cut.kept_entries


def test_the_second_compaction_starts_at_the_first_ones_kept_entry(counter: TokenCounter):
    talk = conversation(10)
    kept = talk.entries[-4]
    talk.compaction("first summary", kept.id)
    before = len(talk.entries)
    for number in range(10):
        talk.user(f"later {number} " + "word " * 50)
        talk.reply("word " * 50)
    cut = plan(talk.path, counter, room=300)
    assert cut.summarised[0] == kept
    assert list(cut.summarised[:4]) == talk.entries[before - 5 : before - 1]
    assert previous_summary(talk.path, None) == "first summary"


def test_in_a_child_session_everything_after_the_compaction_is_live(counter: TokenCounter):
    talk = Talk()
    talk.compaction("from the parent")
    first = talk.user("copied question " * 30)
    talk.entries[0] = talk.entries[0].model_copy(update={"first_kept_entry_id": first.id})
    for _ in range(6):
        talk.reply("answer " * 60)
        talk.user("next " * 60)
    cut = plan(talk.path, counter, room=200)
    assert cut.summarised[0] == first
    assert previous_summary(talk.path, None) == "from the parent"


def test_the_parents_summary_counts_while_there_is_no_compaction_entry():
    carried = Carryover(lastSummary="carried")
    talk = conversation(4)
    assert previous_summary(talk.path, carried) == "carried"
    talk.compaction("newer")
    assert previous_summary(talk.path, carried) == "newer"


@pytest.mark.parametrize("texts", [[], ["hello"]])
def test_less_than_one_exchange_is_refused(counter: TokenCounter, texts: list[str]):
    talk = Talk()
    for text in texts:
        talk.user(text)
    with pytest.raises(CompactionError, match="less than one exchange"):
        drafted(talk.path, counter, window=WINDOW)


def test_a_request_too_large_to_be_answered_can_be_compacted(counter: TokenCounter):
    talk = Talk()
    talk.user("look at this: " + "word " * 1_000)
    with pytest.raises(CompactionError, match="less than one exchange"):
        drafted(talk.path, counter, window=4_000)
    cut = drafted(talk.path, counter, window=1_800)
    assert cut.kept_entries == ()
    assert cut.summarised == (talk.entries[0],)


def test_an_empty_failed_reply_is_no_exchange(counter: TokenCounter):
    talk = Talk()
    talk.user("hello")
    talk.reply("", stop="error")
    with pytest.raises(CompactionError, match="less than one exchange"):
        drafted(talk.path, counter, window=WINDOW)


def test_what_the_model_just_asked_for_stays_where_it_fits(counter: TokenCounter):
    talk = conversation(3)
    talk.tool("read", {"path": "a"}, "line " * 650)
    cut = plan(talk.path, counter, room=100, window=2_048)
    assert len(cut.kept_entries) == 2
    talk.tool("read", {"path": "b"}, "line " * 850)
    assert plan(talk.path, counter, room=100, window=2_048).kept_entries == ()


def test_a_single_exchange_keeps_the_last_reply(counter: TokenCounter):
    talk = conversation(1)
    cut = plan(talk.path, counter, room=1)
    assert cut.first_kept_entry_id == talk.entries[-1].id
    assert kept_messages(cut)[0].message.role == "assistant"


def test_a_giant_last_turn_is_cut_inside(counter: TokenCounter):
    talk = conversation(2)
    talk.user("do the giant thing")
    for number in range(40):
        talk.tool("read", {"path": f"f{number}"}, "line " * 100)
    cut = plan(talk.path, counter, room=1_000)
    assert kept_messages(cut)[0].message.role == "assistant"
    assert 500 < cut.kept_tokens <= 1_000
    assert_paired(cut)


def test_a_turn_without_a_new_request_can_be_compacted_again(counter: TokenCounter):
    talk = conversation(1)
    kept = talk.reply("going on", ToolCall(id="k", name="read"))
    talk.result(ToolCall(id="k", name="read"))
    talk.compaction("so far", kept.id)
    for number in range(40):
        talk.tool("read", {"path": f"f{number}"}, "line " * 100)
    cut = drafted(talk.path, counter, window=6_000)
    assert cut.summarised[0] == kept
    assert previous_summary(talk.path, None) == "so far"


def test_a_last_message_larger_than_half_the_window_does_not_stay(counter: TokenCounter):
    talk = conversation(3)
    talk.user("see this: " + "word " * 8_000)
    cut = plan(talk.path, counter, room=2_000, window=8_000)
    assert cut.kept_entries == ()
    assert cut.first_kept_entry_id == ""


def test_a_call_that_waits_for_its_result_stays_whatever_the_room(counter: TokenCounter):
    talk = conversation(3)
    asked = talk.reply("", ToolCall(id="slow", name="bash", arguments={"command": "x " * 9_000}))
    assert plan(talk.path, counter, room=1, window=2_048).first_kept_entry_id == asked.id
    alone = Talk()
    alone.reply("", ToolCall(id="slow", name="bash", arguments={"command": "x " * 9_000}))
    with pytest.raises(CompactionError, match="there is only the newest reply"):
        plan(alone.path, counter, room=1, window=2_048)


def test_parallel_calls_stay_with_all_their_results(counter: TokenCounter):
    talk = Talk()
    talk.user("go " * 200)
    for number in range(12):
        calls = [ToolCall(id=f"{number}-{n}", name="read") for n in range(3)]
        talk.reply("", *calls)
        for call in reversed(calls):
            talk.result(call, "line " * 40)
    for room in range(100, 1_500, 13):
        assert_paired(plan(talk.path, counter, room=room))


def test_a_message_typed_while_a_tool_ran_is_no_place_to_cut(counter: TokenCounter):
    talk = conversation(2)
    call = ToolCall(id="slow", name="bash", arguments={"command": "make"})
    asked = talk.reply("", call)
    steered = talk.user("use make -j")
    talk.result(call, "built")
    end = counter.count_messages([steered.message]) + 20
    assert plan(talk.path, counter, room=end).first_kept_entry_id == asked.id


def test_edits_of_kept_messages_are_kept_with_them(counter: TokenCounter):
    talk = conversation(6)
    target, other = talk.entries[-2], talk.entries[1]
    edits = [
        ContextEditEntry(id="edit-1", target_id=target.id, replacement="short"),
        ContextEditEntry(id="edit-2", target_id=other.id, replacement="short"),
    ]
    cut = plan((*talk.path, *edits), counter, room=300)
    assert edits[0] in cut.kept_entries
    assert edits[1] not in cut.kept_entries


def test_new_edits_are_kept_for_messages_that_stay_and_come_last(counter: TokenCounter):
    talk = conversation(6)
    live = read_live(talk.path, counter)
    kept, gone = talk.entries[-2], talk.entries[1]
    edits = {
        entry.id: ContextEditEntry(target_id=entry.id, replacement="short")
        for entry in (kept, gone)
    }
    tokens = [
        10 if entry.id in edits else size
        for entry, size in zip(live.entries, live.tokens, strict=True)
    ]
    cut = plan_cut(talk.path, live, live.cuts[-2], edits, tokens)
    assert cut.edits == (edits[kept.id],)
    assert cut.kept_entries[-1] == edits[kept.id]
    assert cut.kept_tokens_now - cut.kept_tokens == live.tokens[-2] - 10


def test_what_was_edited_away_is_summarised_as_it_was_written(counter: TokenCounter):
    talk = conversation(6)
    result = talk.entries[2]
    edit = ContextEditEntry(id="edit-1", target_id=result.id, replacement="short")
    cut = plan((*talk.path, edit), counter, room=300)
    assert isinstance(result, MessageEntry)
    assert cut.summarised[2] == result


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(path=histories())
def test_whatever_the_history_no_call_is_parted_from_its_result(
    counter: TokenCounter, path: tuple[Entry, ...]
):
    for room in (50, 500, 3_000):
        try:
            cut = plan(path, counter, room=room)
        except CompactionError:
            continue
        _check(cut, path)


def _check(cut: CompactionPlan, path: Sequence[Entry]) -> None:
    assert_paired(cut)
    live = live_entries(path)
    kept = kept_messages(cut)
    assert kept == list(live[len(live) - len(kept) :])
    assert (*cut.summarised, *kept) == live
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
        for room in (500, 4_000, 20_000):
            try:
                cut = plan(whole[:end], counter, room=room, window=200_000)
            except CompactionError:
                continue
            _check(cut, whole[:end])
            checked += 1
    assert checked > 100


def test_the_compactions_of_another_program_are_continued(counter: TokenCounter):
    with SessionLog.open(trajectory("pi/before-compaction.jsonl"), read_only=True) as log:
        path = log.path_entries()
    cut = plan(path, counter, room=20_000, window=200_000)
    assert previous_summary(path, None).startswith("# Context Checkpoint")
    assert cut.summarised[0] == live_entries(path)[0]
    _check(cut, path)


@pytest.mark.parametrize("window", [8_000, 16_000])
def test_many_rules_do_not_fill_a_small_window(window: int, counter: TokenCounter):
    talk = Talk()
    for rule in range(60):
        told = " ".join(f"word{rule}x{at}" for at in range(30))
        talk.user(f"Rule {rule}: never {told}")
        talk.reply(f"Done {rule}. " + "text " * 100)
    talk.user("Go on.")
    request = request_for(talk.path, settings=CompactionSettings(), window=window)
    request = replace(request, sizes=replace(request.sizes, overhead=1_500))
    after = make_draft(request, counter=counter).tokens_after(request, counter)
    assert after <= 1.15 * window * request.settings.target_share(window)
