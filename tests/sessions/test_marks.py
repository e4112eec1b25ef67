"""What the user marked, and what the model sees of it."""

from agent_tui.messages import ToolCall
from agent_tui.sessions.context import OMITTED_RESULT_TEXT, build_context
from agent_tui.sessions.entries import CompactionEntry, ContextEditEntry, Entry
from agent_tui.sessions.replay.changes import undo_mark
from agent_tui.sessions.replay.marks import Mark, mark_entry, read_marks
from tests.support.context_checks import assert_normalised
from tests.support.session_values import WHEN, chain
from tests.support.talk import Talk

FIRST, SECOND = (ToolCall(id=name, name="read", arguments={}) for name in ("a", "b"))


def talk() -> tuple[Entry, ...]:
    """Entries e0 (user), e1 (reply with two calls), e2 and e3 (results), e4 (reply), e5 (user)."""
    made = Talk()
    made.user("read both")
    made.reply("I read.", FIRST, SECOND)
    made.result(FIRST, "one")
    made.result(SECOND, "two")
    made.reply("Read.")
    made.user("thanks")
    return made.path


PATH = talk()
USER, REPLY, ONE, TWO, DONE, THANKS = (entry.id for entry in PATH)


def marked(path: tuple[Entry, ...], *marks: tuple[str, Mark | None]) -> tuple[Entry, ...]:
    return chain(*path, *(mark_entry(target, mark) for target, mark in marks))


def compacted(path: tuple[Entry, ...], first_kept: str = THANKS) -> tuple[Entry, ...]:
    entry = CompactionEntry(summary="S", first_kept_entry_id=first_kept, timestamp=WHEN)
    return chain(*path, entry)


def texts(path: tuple[Entry, ...]) -> list[str]:
    messages = build_context(path).messages
    assert_normalised(messages)
    return [item.message.text for item in messages]


def test_a_dropped_message_is_out_of_the_context_until_its_mark_is_taken_off():
    gone = marked(PATH, (USER, "drop"))
    assert "read both" not in texts(gone)
    assert texts(marked(gone, (USER, None))) == texts(PATH)


def test_a_dropped_reply_takes_its_results_along():
    assert texts(marked(PATH, (REPLY, "drop"))) == ["read both", "Read.", "thanks"]


def test_a_dropped_result_still_answers_its_call():
    assert texts(marked(PATH, (ONE, "drop")))[:4] == [
        "read both",
        "I read.",
        OMITTED_RESULT_TEXT,
        "two",
    ]


def test_taking_the_mark_off_a_result_brings_back_the_whole_dropped_exchange():
    assert texts(marked(PATH, (REPLY, "drop"), (ONE, None))) == texts(PATH)


def test_a_dropped_result_of_a_kept_reply_can_be_brought_back_alone():
    path = marked(PATH, (REPLY, "pin"), (ONE, "drop"))
    assert read_marks(path).emptied == {ONE}
    assert REPLY in read_marks(marked(path, (ONE, None))).staying
    assert texts(marked(path, (ONE, None))) == texts(PATH)


def test_what_is_kept_stands_behind_the_next_summary_and_leaves_with_the_one_after():
    once = compacted(marked(PATH, (ONE, "keep")))
    assert texts(once)[1:] == ["I read.", "one", "two", "thanks"]
    assert texts(compacted(once))[1:] == ["thanks"]


def test_what_is_pinned_stands_behind_every_summary():
    path = marked(PATH, (ONE, "pin"))
    for _ in range(3):
        path = compacted(path)
        assert texts(path)[1:] == ["I read.", "one", "two", "thanks"]


def test_a_result_emptied_in_a_kept_exchange_still_answers_its_call_after_the_compaction():
    once = compacted(marked(PATH, (REPLY, "keep"), (ONE, "drop")))
    assert texts(once)[1:] == ["I read.", OMITTED_RESULT_TEXT, "two", "thanks"]


def test_undoing_the_compaction_leaves_the_mark_for_the_next_one():
    once = compacted(marked(PATH, (USER, "keep")))
    undone = chain(*once, undo_mark([once[-1].id]))
    assert texts(undone) == texts(PATH)
    assert texts(compacted(undone))[1:] == ["read both", "thanks"]


def test_what_is_kept_stands_whole_whatever_shortened_it():
    edit = ContextEditEntry(target_id=USER, replacement="cut", timestamp=WHEN)
    path = marked(chain(*PATH, edit), (USER, "keep"))
    assert texts(path)[0] == "read both"
    assert texts(compacted(path))[1] == "read both"


def test_a_mark_made_on_a_branch_that_was_left_does_not_count():
    assert read_marks(PATH).by_id == {}
    assert read_marks(marked(PATH, (USER, "drop"))[: len(PATH)]).by_id == {}
