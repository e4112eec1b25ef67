import pytest
from hypothesis import given, settings
from pydantic import JsonValue

from agent_tui.sessions.entries import (
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    Entry,
    LabelEntry,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import (
    EDIT_REPORT,
    UNDO,
    EditReport,
    changes_context,
    in_force,
    is_undo_mark,
    newest_change,
    report_entry,
    report_of,
    undo_mark,
)
from agent_tui.sessions.replay.pins import is_unpin
from tests.support.context_checks import assert_sendable, context_bytes
from tests.support.histories import changed_histories
from tests.support.rows import each_row
from tests.support.session_values import WHEN, chain, conversation, entry, header, reply, user

EARLIER, LATER = "2026-03-02T08:00:00.000Z", "2026-03-02T10:00:00.000Z"


def compaction(first_kept: str = "00000006", at: str = WHEN) -> CompactionEntry:
    return CompactionEntry(summary="S", first_kept_entry_id=first_kept, timestamp=at)


def edit(target: str, batch: str = "b1", at: str = WHEN) -> ContextEditEntry:
    return ContextEditEntry(target_id=target, replacement="cut", batch=batch, timestamp=at)


def report(batch: str = "b1") -> CustomEntry:
    return report_entry(EditReport(batch=batch, reason="threshold"))


def undone(path: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """`path` with its newest change taken back."""
    return chain(*path, undo_mark(newest_change(path)))


def all_undone(path: tuple[Entry, ...]) -> tuple[Entry, ...]:
    while newest_change(path):
        path = undone(path)
    return path


def test_a_path_without_marks_is_in_force_as_it_is() -> None:
    path = chain(*conversation(), edit("00000003"), compaction(), report())
    assert in_force(path) is path
    assert in_force(()) == ()


def test_what_a_mark_names_is_not_in_force_and_everything_else_is() -> None:
    path = chain(*conversation(), edit("00000003"), edit("00000004"), compaction())
    marked = chain(*path, undo_mark(("00000008", "0000000a")))
    assert in_force(marked) == (*path[:7], path[8], marked[-1])
    assert context_bytes(marked) == context_bytes(chain(*path[:7], path[8]))


def test_messages_cannot_be_taken_back() -> None:
    path = chain(*conversation(), LabelEntry(target_id="00000001"))
    marked = chain(*path, undo_mark([entry.id for entry in path]))
    assert in_force(marked) == marked
    assert context_bytes(marked) == context_bytes(path)


@each_row(
    "data",
    [None, 3, "00000008", [], ["00000008"], {}, {"entries": "00000008"}, {"entries": [8, None]}],
    ids=repr,
)
def test_a_mark_that_cannot_be_read_takes_nothing_back(data: JsonValue) -> None:
    mark = CustomEntry(custom_type=UNDO, data=data)
    path = chain(*conversation(), compaction(), mark)
    assert is_undo_mark(mark)
    assert in_force(path) == path
    assert newest_change(path) == ("00000008",)


@pytest.mark.parametrize("named", [(), ("of-another-file",), ("",)], ids=repr)
def test_a_mark_that_names_nothing_here_takes_nothing_back(named: tuple[str, ...]) -> None:
    path = chain(*conversation(), compaction(), undo_mark(named))
    assert in_force(path) == path
    assert newest_change(path) == ("00000008",)


def test_fields_of_a_later_version_do_not_spoil_a_mark() -> None:
    mark = CustomEntry(custom_type=UNDO, data={"entries": ["00000008"], "why": "the person"})
    assert newest_change(chain(*conversation(), compaction(), mark)) == ()


def test_an_undoing_cannot_be_undone() -> None:
    path = undone(chain(*conversation(), compaction()))
    again = chain(*path, undo_mark((path[-1].id,)))
    assert newest_change(again) == ()
    assert context_bytes(again) == context_bytes(conversation())


def test_taking_the_same_back_twice_is_like_once() -> None:
    path = chain(*conversation(), edit("00000003"), compaction())
    once = undone(path)
    twice = chain(*once, undo_mark(newest_change(path)))
    assert newest_change(once) == newest_change(twice) == ("00000008",)
    assert context_bytes(twice) == context_bytes(once)


def test_undoing_twice_goes_back_two_changes() -> None:
    path = chain(*conversation(), edit("00000003"), edit("00000004"), report(), compaction())
    edited = context_bytes(path[:10])
    assert newest_change(path) == ("0000000b",)
    once = undone(path)
    assert context_bytes(once) == edited
    assert newest_change(once) == ("00000008", "00000009")
    twice = undone(once)
    assert context_bytes(twice) == context_bytes(conversation())
    assert newest_change(twice) == ()


def test_only_the_newest_batch_is_the_newest_change() -> None:
    first = chain(*conversation(), edit("00000003"), edit("00000004"), report())
    path = chain(*first, edit("00000004", "b2"), report("b2"))
    assert newest_change(path) == ("0000000b",)
    assert context_bytes(undone(path)) == context_bytes(first)
    straight = chain(*conversation(), edit("00000003"), edit("00000004", "b2"))
    assert newest_change(straight) == ("00000009",)


def test_edits_of_the_same_batch_with_something_between_them_are_two_changes() -> None:
    path = chain(*conversation(), edit("00000003"), entry(user("go on")), edit("00000004"))
    assert newest_change(path) == ("0000000a",)
    assert newest_change(undone(path)) == ("00000008",)


def test_edits_made_again_after_they_were_taken_back_are_undone_alone() -> None:
    path = undone(chain(*conversation(), edit("00000003"), report()))
    again = chain(*path, edit("00000003"), report())
    assert newest_change(again) == (again[-2].id,)
    assert context_bytes(undone(again)) == context_bytes(conversation())


def test_nothing_was_changed_in_a_conversation_without_changes() -> None:
    assert newest_change(()) == ()
    assert newest_change(conversation()) == ()
    assert newest_change(chain(*conversation(), report())) == ()


def test_the_compaction_a_session_begins_with_is_newer_than_the_edits_copied_after_it() -> None:
    begun = chain(
        compaction(), entry(user("kept")), entry(reply("long")), edit("00000003", at=EARLIER)
    )
    assert newest_change(begun) == ("00000001",)
    shortened = chain(*begun, edit("00000002", "b2", LATER), report("b2"))
    assert newest_change(shortened) == ("00000005",)
    assert newest_change(undone(shortened)) == ("00000001",)


def test_edits_made_here_are_told_from_copied_ones_whatever_the_clock_says() -> None:
    begun = chain(compaction(), entry(user("kept")), entry(reply("long")))
    shortened = chain(*begun, edit("00000003", at=EARLIER), report())
    assert newest_change(shortened) == ("00000004",)


def test_a_compaction_in_place_is_newer_than_the_one_a_session_begins_with() -> None:
    begun = chain(compaction(), entry(user("kept")), entry(reply("ok")))
    path = chain(*begun, compaction("00000002"))
    assert newest_change(path) == ("00000004",)
    assert newest_change(undone(path)) == ("00000001",)


def test_a_mark_counts_on_its_own_branch_only() -> None:
    with SessionLog.create(None, header()) as log:
        log.append_many([*conversation(), compaction()])
        compacted = log.path_entries()
        fork = compacted[-1].id
        log.append(undo_mark(newest_change(compacted)))
        assert newest_change(log.path_entries()) == ()
        log.branch_to(fork)
        log.append(entry(user("on another branch")))
        assert newest_change(log.path_entries()) == (fork,)
        assert context_bytes(log.path_entries())[:-1] == context_bytes(compacted)


def test_a_mark_before_the_branch_counts_on_both() -> None:
    with SessionLog.create(None, header()) as log:
        log.append_many([*conversation(), compaction()])
        mark = log.append(undo_mark(newest_change(log.path_entries())))
        for text in ("one way", "the other"):
            log.branch_to(mark.id)
            log.append(entry(user(text)))
            assert newest_change(log.path_entries()) == ()
            assert context_bytes(log.path_entries())[:-1] == context_bytes(conversation())


def test_a_report_is_read_as_it_was_written() -> None:
    given_ = EditReport(
        batch="b1",
        reason="threshold",
        tokens_before=900,
        tokens_after=300,
        freed={0: 10, 2: 590},
        messages={0: 1, 2: 4},
    )
    with SessionLog.create(None, header()) as log:
        assert report_of(log.append(report_entry(given_))) == given_


@each_row("data", [None, [], "b1", {}, {"batch": 3}, {"batch": "b", "freed": [1]}])
def test_a_report_that_cannot_be_read_is_none(data: JsonValue) -> None:
    assert report_of(CustomEntry(custom_type=EDIT_REPORT, data=data)) is None


def test_only_reports_are_reports() -> None:
    data = report().data
    others = (CustomEntry(custom_type="todo", data=data), undo_mark(()), edit("1"), user_entry())
    assert [report_of(other) for other in others] == [None] * 4


def user_entry() -> Entry:
    return entry(user("hello"))


def test_what_changes_the_context_is_edits_compactions_and_their_undoing() -> None:
    changing = (edit("1"), compaction(), undo_mark(()))
    assert all(map(changes_context, changing))
    assert not any(map(changes_context, (report(), user_entry(), LabelEntry(target_id="1"))))


@settings(max_examples=150)
@given(changed_histories())
def test_undoing_everything_gives_the_context_of_what_was_said(path: tuple[Entry, ...]) -> None:
    said = tuple(e for e in path if not changes_context(e) or is_unpin(e))
    back = all_undone(path)
    assert context_bytes(back) == context_bytes(said)


@settings(max_examples=100)
@given(changed_histories())
def test_each_undoing_takes_back_something_and_leaves_a_context_to_send(
    path: tuple[Entry, ...],
) -> None:
    changes = sum(isinstance(e, CompactionEntry | ContextEditEntry) for e in in_force(path))
    while named := newest_change(path):
        path = chain(*path, undo_mark(named))
        left = sum(isinstance(e, CompactionEntry | ContextEditEntry) for e in in_force(path))
        assert left == changes - len(named)
        assert_sendable(path)
        changes = left
    assert changes == 0
