import random

from agent_tui.tools.files.diffs import unified_diff


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
