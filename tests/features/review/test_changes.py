"""Hunks as values: what they say, how they are recognized, taken back and applied."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.review.changes import (
    FileChange,
    Hunk,
    file_change,
    find_hunks,
    function_above,
    pair_renames,
    split_lines,
    without_hunk,
)

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", "\x1b[2J", ""]), max_size=30)
TEXTS = st.builds(
    lambda lines, ends: "\n".join(lines) + ("\n" if ends and lines else ""), LINES, st.booleans()
)
PLACE = Path("/w/a.py")


def change_of(before: str | None, after: str | None, name: str = "a.py") -> FileChange:
    contents = [None if text is None else text.encode() for text in (before, after)]
    return file_change(name, PLACE, *contents)


def hunks_of(before: str, after: str) -> list[Hunk]:
    return list(find_hunks(split_lines(before), split_lines(after)))


@given(TEXTS, TEXTS)
def test_all_hunks_taken_back_are_the_old_text(before: str, after: str):
    old = after
    for hunk in reversed(hunks_of(before, after)):
        taken = without_hunk(old, hunk)
        assert taken is not None
        old = taken
    assert old == before


@given(TEXTS, TEXTS)
def test_the_lines_of_hunks_are_those_of_the_files_with_their_numbers(before: str, after: str):
    old, new = split_lines(before), split_lines(after)
    hunks = hunks_of(before, after)
    for hunk in hunks:
        for line in hunk.lines:
            assert not line.old or old[line.old - 1] == line.text
            assert not line.new or new[line.new - 1] == line.text
            assert bool(line.old) == (line.sign != "+")
            assert bool(line.new) == (line.sign != "-")
    assert len({hunk.key for hunk in hunks}) == len(hunks)
    assert bool(hunks) == (before != after)


def test_a_hunk_keeps_its_key_when_lines_above_it_change():
    before = "".join(f"{n}\n" for n in range(30))
    after = before.replace("20\n", "twenty\n")
    (hunk,) = hunks_of(before, after)
    _, moved = hunks_of(before, "new\n" + after)
    assert (moved.key, moved.new_start) == (hunk.key, hunk.new_start + 1)
    (other,) = hunks_of(before, after.replace("twenty", "Twenty"))
    assert other.key != hunk.key


def test_a_large_change_is_one_hunk_with_its_context():
    before = "top\n" + "".join(f"{n}\n" for n in range(15_000)) + "end\n"
    after = "top\n" + "".join(f"{n + 1}x\n" for n in range(15_000)) + "end\n"
    (hunk,) = hunks_of(before, after)
    assert hunk.lines[0].text == "top\n"
    assert hunk.lines[-1].text == "end\n"
    assert without_hunk(after, hunk) == before


def test_many_changes_of_a_large_file_are_hunks_of_their_own():
    old = [f"{n}\n" for n in range(6_000)]
    new = [f"{line[:-1]}!\n" if n % 100 == 50 else line for n, line in enumerate(old)]
    hunks = list(find_hunks(old, new))
    assert len(hunks) == 60
    assert all("".join(line.sign for line in hunk.lines) == "   -+   " for hunk in hunks)
    after = "".join(new)
    for hunk in reversed(hunks):
        after = without_hunk(after, hunk) or ""
    assert after == "".join(old)


def test_new_deleted_and_binary_files_are_told_apart():
    assert change_of(None, "x\n").kind == "new file"
    assert change_of("x\n", None).kind == "deleted"
    binary = file_change("a.png", PLACE, b"\x89PNG\0", b"\x89PNG\0\1")
    assert (binary.note, binary.hunks) == ("binary", ())
    assert change_of("x\n", "y\ny\n").counts == (2, 1)


def test_a_removed_and_an_added_file_that_are_alike_are_a_rename():
    text = "".join(f"line {n}\n" for n in range(20))
    gone, come = change_of(text, None, "old.py"), change_of(None, text + "more\n", "new.py")
    other = change_of(None, "something else\n", "other.py")
    renamed, left = pair_renames([other, come, gone])
    assert (renamed.name, renamed.was, renamed.counts) == ("new.py", "old.py", (1, 0))
    assert renamed.kind == "renamed from old.py"
    assert left is other
    assert pair_renames([gone, other]) == [gone, other]


def test_a_mark_of_the_users_is_bound_to_the_content():
    assert change_of("x", "y").digest == change_of("z", "y").digest
    assert change_of("x", "y").digest != change_of("x", "y\n").digest
    assert change_of("x", None).digest != change_of("x", "").digest


def test_a_hunk_is_headed_by_the_function_above_it():
    old = ["def f():\n", "    x\n", "\n", "def g():\n", *(f"    {n}\n" for n in range(9))]
    first, last = find_hunks(old, ["def F():\n", *old[1:-1], "    nine\n"])
    assert function_above(old, first) == ""
    assert function_above(old, last) == "def g():"
