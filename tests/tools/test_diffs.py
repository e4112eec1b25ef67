import random
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.tools.files.diffs import after_diff, before_diff, unified_diff
from tests.support.rows import each_row


def test_a_diff_counts_lines_and_names_the_file():
    diff = unified_diff("a\nb\nc\n", "a\nB\nc\nd\n", "x.py")
    assert diff.counts == "+2 -1"
    assert diff.text.splitlines()[:3] == ["--- x.py", "+++ x.py", "@@ -1,3 +1,4 @@"]


def test_equal_texts_give_an_empty_diff():
    assert unified_diff("a\n", "a\n", "x").text == ""


def test_a_missing_last_newline_is_said_and_form_feeds_do_not_split_lines():
    diff = unified_diff("a\x0cb\u2028c\n", "a", "x")
    assert diff.counts == "+1 -1"
    assert diff.text.endswith("+a\n\\ No newline at end of file\n")


def test_a_huge_file_is_compared_in_one_hunk():
    lines = [f"{random.Random(7).random()}{number}\n" for number in range(30_000)]
    changed = [*lines[:15_000], "new\n", *lines[15_002:]]
    diff = unified_diff("".join(lines), "".join(changed), "x")
    assert diff.counts == "+1 -2"
    assert "@@ -14998,8 +14998,7 @@" in diff.text


@each_row(
    ("before", "after", "lines"),
    [
        ("a\nb\nc\n", "a\nB\nB\nc\n", "2-3"),
        ("a\nb\nc\nd\ne\n", "A\nb\nd\ne\ne\n", "1, 3, 5"),
        ("a\nb\n", "a\n", "2"),
        ("a\nb", "a\nc", "2"),
        ("a\n", "a\n", ""),
        ("", "a\nb\n", "1-2"),
        ("a\nb\n" * 12, "a\nc\n" * 12, "2, 4, 6, 8, 10, 12, 14, 16, 18, 20, ..."),
    ],
)
def test_changed_lines_are_named_as_they_are_numbered_now(before: str, after: str, lines: str):
    assert unified_diff(before, after, "x").lines == lines


_LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "ab\n"]), max_size=12)


@given(_LINES, _LINES, _LINES, _LINES, st.booleans())
def test_the_hunk_of_a_huge_file_leads_from_one_text_to_the_other_and_back(
    above: list[str], old: list[str], new: list[str], below: list[str], is_ended: bool
):
    before, after = ("".join(chain(above, part, below)) for part in (old, new))
    if not is_ended:
        before, after = before + "end", after + "end"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent_tui.tools.files.diffs._MAX_COMPARED_LINES", -1)
        diff = unified_diff(before, after, "x").text
    assert after_diff(before, diff) == after
    assert before_diff(after, diff) == before
    assert diff.count("\n ") <= 7
