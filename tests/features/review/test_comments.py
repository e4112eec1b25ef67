"""Comments: they follow their lines, are kept, and are sent as one message."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.review.changes import FileChange, file_change
from agent_tui.features.review.comments import (
    Comment,
    ReviewedFile,
    ReviewState,
    comment_entry,
    comment_on,
    place_comment,
    read_state,
    review_message,
    reviewed_entry,
)
from agent_tui.features.review.layout import lay_out
from agent_tui.features.review.view import draw_comment
from agent_tui.ui.theme.palette import Palette

WORDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12)


def change_of(lines: list[str], name: str = "a.py") -> FileChange:
    text = "".join(f"{line}\n" for line in lines)
    return file_change(name, Path("/w") / name, b"", text.encode())


def on_lines(lines: list[str], first: int, last: int, name: str = "a.py") -> Comment:
    return comment_on(change_of(lines, name), "new", first, last, "Why?", "c1")


@given(WORDS, st.data(), WORDS, WORDS)
def test_a_comment_follows_lines_that_stand_once(
    around: list[str], data: st.DataObject, above: list[str], below: list[str]
):
    at = data.draw(st.integers(0, len(around)))
    lines = [*around[:at], "THIS", "AND THAT", *around[at:]]
    comment = on_lines(lines, at + 1, at + 2)
    assert comment.lines == ("THIS", "AND THAT")
    moved = [*above, "THIS", "AND THAT", *below]
    assert place_comment(comment, moved) == (len(above) + 1, False)


@given(WORDS, st.data())
def test_a_comment_stays_where_nothing_changed(lines: list[str], data: st.DataObject):
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    comment = on_lines(lines, first, last)
    assert place_comment(comment, lines) == (first, False)


@given(WORDS, WORDS, st.data())
def test_a_place_is_always_in_the_file(lines: list[str], others: list[str], data: st.DataObject):
    first = data.draw(st.integers(1, len(lines)))
    place = place_comment(on_lines(lines, first, first), others)
    assert 1 <= place.line <= len(others)
    assert place.is_changed == (lines[first - 1] not in others)


def test_of_equal_lines_the_one_with_the_same_neighbours_counts():
    comment = on_lines(["a", "x", "b", "c", "x", "d"], 5, 5)
    assert place_comment(comment, ["c", "x", "d", "n", "n", "n", "a", "x", "b"]) == (2, False)


def test_changed_lines_are_found_below_what_was_above_them():
    comment = on_lines(["def f():", "    return 1", "", "def g():"], 2, 2)
    now = ["import os", "", "def f():", "    return 2", "", "def g():"]
    assert place_comment(comment, now) == (4, True)
    assert place_comment(comment, []) == (1, True)


def test_a_comment_on_a_file_has_no_line():
    comment = comment_on(change_of(["a"]), "new", 0, 0, "Rename it.", "c1")
    assert (comment.place, comment.lines) == ("a.py", ())
    assert place_comment(comment, ["b"]) == (0, False)


def test_the_newest_entry_counts_and_those_of_other_clones_do_not():
    first = on_lines(["a", "b"], 1, 1)
    changed = first.model_copy(update={"text": "Really?", "state": "sent"})
    foreign = comment_entry(first).model_copy(update={"pulled_from": "somebody"})
    mark = ReviewedFile(path="a.py", digest=change_of(["a"]).digest)
    state = read_state(
        [comment_entry(first), reviewed_entry(mark), comment_entry(changed), foreign]
    )
    assert state.comments == {"c1": changed}
    assert state.unsent() == []
    assert state.is_reviewed(change_of(["a"]))
    assert not state.is_reviewed(change_of(["b"]))
    state.take(reviewed_entry(mark.model_copy(update={"is_reviewed": False})))
    assert not state.is_reviewed(change_of(["a"]))


def test_the_message_has_file_line_side_and_the_lines_themselves():
    one = on_lines(["a", "b", "c"], 2, 3, "src/a.py")
    old = comment_on(
        file_change("b.py", Path("/w/b.py"), b"gone\n", b""), "old", 1, 1, "Keep this.", "c2"
    )
    whole = comment_on(change_of([], "c\x1b.py"), "new", 0, 0, "Why this file?", "c3")
    assert review_message([one, old, whole]) == (
        "I reviewed the changes and have 3 comments:\n\n"
        "1. src/a.py, lines 2-3 after the change\n    2| b\n    3| c\nWhy?\n\n"
        "2. b.py, line 1 before the change\n    1| gone\nKeep this.\n\n"
        '3. "c\\u001b.py", the whole file\nWhy this file?\n\n'
        "Address each comment, or say why not."
    )


def test_many_and_long_lines_are_shortened_in_the_message():
    text = review_message([on_lines(["x" * 1_000] * 50, 1, 50)])
    assert "... and 10 more lines" in text
    assert len(text) < 18_000


def test_a_comment_on_other_changes_is_not_called_changed():
    state = ReviewState()
    here = change_of(["x"])
    made = comment_on(change_of(["was"]), "new", 1, 1, "Why?", "c1")
    for source, is_changed in (("", True), ("A..B", False)):
        state.comments["c1"] = made.model_copy(update={"source": source})
        items = lay_out([here], state, (), is_split=False)
        (item,) = [one for one in items if one.kind == "comment"]
        assert item.is_changed is is_changed
    (line, code, text) = draw_comment(
        state.comments["c1"], 40, Palette(), is_changed=False, is_at_lines=False
    )
    assert line.row.strip() == "┃ a.py:1 · you · not sent yet"
    assert code.row.strip() == "┃ 1  was"
    assert text.row.strip() == "┃ Why?"
    elsewhere = lay_out([], state, (), is_split=False)
    assert not elsewhere[-1].is_changed
