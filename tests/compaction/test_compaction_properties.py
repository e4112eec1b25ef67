"""What a compaction keeps, whatever the session is; no model is asked."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from hypothesis import strategies as st

from agent_tui.compaction.draft import make_draft
from agent_tui.compaction.outcome import CompactionResult, child_entries
from agent_tui.compaction.plan import CompactionPlan, live_entries, previous_summary
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.messages import ToolCall, UserMessage
from agent_tui.sessions.entries import ContextEditEntry, Entry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import in_force, newest_change, undo_mark
from agent_tui.sessions.replay.pins import pins_on, removed_pins
from agent_tui.tokens import TokenCounter
from tests.compaction import compacting
from tests.compaction.compacting import (
    assert_newest_stay,
    in_place,
    is_shown,
    request_for,
    seen,
    size,
)
from tests.compaction.tiers.planning import planned
from tests.support.context_checks import assert_sendable, context_bytes
from tests.support.histories import (
    SOME_OR_ALL,
    changed_histories,
    continued,
    drawn_bytes,
    files_touched,
    for_every,
    rules_said,
)
from tests.support.session_values import header
from tests.support.talk import Talk

WINDOW = 20_000
SETTINGS = CompactionSettings(keep_recent_tokens=1_500, protected_messages=4)


def compacted(path: Sequence[Entry], counter: TokenCounter) -> CompactionResult | None:
    return compacting.compacted(path, counter, settings=SETTINGS, window=WINDOW)


@SOME_OR_ALL
def test_what_is_left_can_be_sent_and_is_smaller_in_the_session_and_in_its_child(
    examples: int, counter: TokenCounter
) -> None:
    def check(path: tuple[Entry, ...]) -> None:
        result = compacted(path, counter)
        if result is None:
            return
        assert result.tokens_after < result.tokens_before
        present, child = in_place(path, result), child_entries(result)
        for after in (present, child):
            assert_sendable(after)
            assert size(after, counter) < size(path, counter)
            first = seen(after)[0].message
            assert isinstance(first, UserMessage)
            assert result.summary in first.text
            assert_newest_stay(path, after, result)
        assert [item.message.text for item in seen(child)] == [
            item.message.text for item in seen(present)
        ]

    for_every(changed_histories(), examples, check)


@SOME_OR_ALL
def test_what_is_pinned_stays_word_for_word_where_it_was_put_or_behind_the_summary(
    examples: int, counter: TokenCounter
) -> None:
    def check(case: tuple[tuple[Entry, ...], bytes]) -> None:
        path, more = case
        for _ in range(3):
            texts = [entry.text for entry in pins_on(in_force(path)).values()]
            shown = [item.message.text for item in seen(path)]
            assert all(shown.count(text) >= texts.count(text) for text in texts)
            result = compacted(path, counter)
            if result is None:
                return
            child = child_entries(result)
            for after in (in_place(path, result), child):
                left = [item.message.text for item in seen(after)]
                assert all(left.count(text) >= texts.count(text) for text in texts)
            path = continued(child, more)

    for_every(st.tuples(changed_histories(), drawn_bytes(60)), examples, check)


@SOME_OR_ALL
def test_nothing_that_could_fill_the_window_is_refused(
    examples: int, counter: TokenCounter
) -> None:
    def check(path: tuple[Entry, ...]) -> None:
        talk = Talk(entries=list(path), prefix="last")
        talk.reply("It is done.")
        if compacted(talk.path, counter) is None:
            assert size(talk.path, counter) <= WINDOW // 2

    for_every(changed_histories(), examples, check)


@SOME_OR_ALL
def test_a_second_compaction_begins_where_the_first_one_kept(
    examples: int, counter: TokenCounter
) -> None:
    def check(case: tuple[tuple[Entry, ...], bytes]) -> None:
        path, more = case
        result = compacted(path, counter)
        if result is None:
            return
        for once in (in_place(path, result), child_entries(result)):
            for present in (once, continued(once, more)):
                again = compacted(present, counter)
                if again is not None:
                    after = in_place(present, again, "second")
                    assert size(after, counter) < size(present, counter)
                    assert_sendable(after)
                try:
                    cut = _plan(present, counter)
                except CompactionError:
                    continue
                assert previous_summary(present, None) == result.summary
                pins = in_force(present)
                no_message = {entry.id for entry in pins_on(pins).values()} | removed_pins(pins)
                kept = [entry.id for entry in live_entries(present)]
                begun = [*(one.id for one in cut.summarised), *_messages_kept(cut)]
                assert _without(begun, no_message) == _without(kept, no_message)

    for_every(st.tuples(changed_histories(), drawn_bytes(60)), examples, check)


@SOME_OR_ALL
def test_rules_stay_word_for_word_and_file_lists_grow_round_by_round(
    examples: int, counter: TokenCounter
) -> None:
    def check(case: tuple[tuple[Entry, ...], list[bytes]]) -> None:
        path, rounds = case
        rules: set[str] = set()
        files: set[str] = set()
        modified: set[str] = set()
        for number, drawn in enumerate(rounds):
            path = continued(path, drawn)
            rules |= rules_said(path)
            files |= files_touched(path)
            result = compacted(path, counter)
            if result is None:
                continue
            known = result.carryover
            assert all(is_shown(rule, result) for rule in rules)
            assert files <= {*known.read_files, *known.modified_files}
            assert modified <= set(known.modified_files)
            files |= {*known.read_files, *known.modified_files}
            modified |= set(known.modified_files)
            path = in_place(path, result, f"round{number}")

    some_rounds = st.lists(drawn_bytes(60), min_size=1, max_size=4)
    for_every(st.tuples(changed_histories(), some_rounds), examples, check)


@SOME_OR_ALL
def test_taking_changes_back_one_by_one_gives_each_earlier_context_byte_for_byte(
    examples: int, counter: TokenCounter, tmp_path: Path
) -> None:
    file = tmp_path / "session.jsonl"

    def check(path: tuple[Entry, ...]) -> None:
        file.unlink(missing_ok=True)
        with SessionLog.write(file, header(), path, "none") as log:
            earlier = [context_bytes(log.path_entries())]
            if edits := planned(log.path_entries(), counter, target=1_000).edits:
                log.append_many(edits)
                earlier.append(context_bytes(log.path_entries()))
            if (result := compacted(log.path_entries(), counter)) is not None:
                log.append_many((*result.edits, result.entry("threshold")))
                earlier.append(context_bytes(log.path_entries()))
            _assert_resumes(file, earlier.pop())
            while earlier:
                log.append(undo_mark(newest_change(log.path_entries())))
                assert context_bytes(log.path_entries()) == earlier[-1]
                _assert_resumes(file, earlier.pop())

    for_every(changed_histories(), examples, check)


@SOME_OR_ALL
def test_a_call_that_still_waits_stays_and_gets_its_result(
    examples: int, counter: TokenCounter
) -> None:
    def check(case: tuple[tuple[Entry, ...], str]) -> None:
        path, written = case
        talk = Talk(entries=list(path), prefix="w")
        waiting = ToolCall(id="now_0", name="compact")
        quick = ToolCall(id="now_1", name="write", arguments={"path": "a", "content": written})
        asked = talk.reply("I make room first.", waiting, quick)
        talk.result(quick, "written meanwhile")
        result = compacted(talk.path, counter)
        if result is None:
            return
        for after in (in_place(talk.path, result), child_entries(result)):
            later = Talk(entries=list(after), prefix="r")
            answer = later.result(waiting, "room was made")
            reply, first, second = seen(later.path)[-3:]
            assert reply.entry_id == asked.id
            assert first.entry_id == answer.id
            assert first.message.text == "room was made"
            assert second.message.text == "written meanwhile"
            assert_sendable(later.path)

    written = st.sampled_from(["", "word " * 12_000])
    for_every(st.tuples(changed_histories(), written), examples, check)


def _plan(path: Sequence[Entry], counter: TokenCounter) -> CompactionPlan:
    request = request_for(path, settings=SETTINGS, window=WINDOW)
    return make_draft(request, counter=counter).plan


def _without(ids: Sequence[str], left_out: AbstractSet[str]) -> list[str]:
    return [entry_id for entry_id in ids if entry_id not in left_out]


def _messages_kept(cut: CompactionPlan) -> list[str]:
    return [entry.id for entry in cut.kept_entries if not isinstance(entry, ContextEditEntry)]


def _assert_resumes(file: Path, live: list[str]) -> None:
    with SessionLog.open(file, read_only=True) as log:
        assert context_bytes(log.path_entries()) == live
