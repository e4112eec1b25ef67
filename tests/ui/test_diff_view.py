import difflib

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.ui.diff_view import diff_lines, diff_stat, parse_diff
from agent_tui.ui.palette import plain_palette
from agent_tui.ui.styled_lines import copied_text

DIFF = """--- a/x.py
+++ b/x.py
@@ -8,3 +8,4 @@ def f():
 same
-old
+new
+-- newer
 end
@@ -40 +41 @@
-a
\\ No newline at end of file
+b
"""


def drawn(diff: str, width: int = 24) -> list[str]:
    return [line.row.rstrip() for line in diff_lines(parse_diff(diff), width, plain_palette())]


def test_lines_are_numbered_as_in_the_new_file_and_removed_ones_as_in_the_old():
    assert drawn(DIFF) == [
        "b/x.py",
        " ⋯  def f():",
        " 8   same",
        " 9 - old",
        " 9 + new",
        "10 + -- newer",
        "11   end",
        " ⋯",
        "40 - a",
        "41 + b",
    ]


def test_changed_lines_fill_the_width():
    rows = diff_lines(parse_diff(DIFF), 24, plain_palette())
    assert {row.cells for row in rows if not row.is_decoration} - {6} == {24}


def test_the_head_of_a_second_file_is_not_a_change():
    assert diff_stat(DIFF + DIFF) == (6, 4)
    assert drawn(DIFF + DIFF).count("b/x.py") == 2


def test_a_removed_line_that_looks_like_a_head_is_a_change():
    assert diff_stat("@@ -1,2 +1 @@\n--- x\n-++ y\n+z\n") == (1, 2)


def test_text_that_is_no_diff_is_shown_as_it_is():
    assert drawn("hello\nworld") == ["    hello", "    world"]


def test_a_long_line_wraps_under_its_text():
    assert drawn("@@ -1 +1 @@\n+" + "x" * 12, 12) == ["1 + xxxxxxxx", "    xxxx"]


def test_copying_leaves_numbers_and_signs_out():
    rows = diff_lines(parse_diff(DIFF), 40, plain_palette())
    assert copied_text(rows) == "b/x.py\nsame\nold\nnew\n-- newer\nend\na\nb"


def test_control_characters_in_a_diff_are_shown():
    assert drawn("@@ -1 +1 @@\n+\x1b[31mred") == ["1 + ␛[31mred"]


lines = st.lists(st.sampled_from(["", "a", "b", "-- x", "++ y", "@@ -1 +1 @@", "\\ z", " s"]))


@settings(deadline=None)
@given(lines, lines, st.integers(0, 3))
def test_every_change_of_a_real_diff_is_found(old: list[str], new: list[str], context: int):
    diff = list(difflib.unified_diff(old, new, "a", "b", lineterm="", n=context))
    added = sum(line.startswith("+") for line in diff[2:])
    removed = sum(line.startswith("-") for line in diff[2:])
    rows = parse_diff("\n".join(diff))
    assert diff_stat("\n".join(diff)) == (added, removed)
    for row in rows:
        if row.kind in ("added", "unchanged") and row.number is not None:
            assert new[row.number - 1] == row.text
        if row.kind == "removed" and row.number is not None:
            assert old[row.number - 1] == row.text
