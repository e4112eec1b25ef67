from agent_tui.features.plain.voice import diff_words
from agent_tui.tools.files.diffs import unified_diff

BEFORE = "".join(f"line {n}\n" for n in range(1, 21))


def test_a_change_is_told_by_line_numbers_and_what_stays_is_left_out():
    after = BEFORE.replace("line 6\n", "line six\n").replace("line 19\n", "")
    assert diff_words(unified_diff(BEFORE, after, "a.txt").text) == [
        "a.txt: 1 line added, 2 lines removed.",
        "Line 6 removed: line 6",
        "Line 6 added: line six",
        "Line 19 removed: line 19",
    ]


def test_lines_that_look_like_headers_are_told_as_what_they_are():
    lines = diff_words(unified_diff("-- a\nb\n", "++ a\nb\n", "a.sql").text)
    assert lines[1:] == ["Line 1 removed: -- a", "Line 1 added: ++ a"]


def test_a_missing_newline_at_the_end_is_told():
    lines = diff_words(unified_diff("a\n", "a", "a.txt").text)
    assert lines[-1] == "Note: No newline at end of file"


def test_a_file_that_gets_another_name_and_what_is_no_diff_are_told():
    assert diff_words("--- a.txt\n+++ b.txt\nBinary files differ") == [
        "a.txt renamed to b.txt: 0 lines added, 0 lines removed.",
        "Also: Binary files differ",
    ]


def test_nothing_in_a_line_begins_another_one():
    lines = diff_words(unified_diff("", "a\u2028Why it asks: no reason\r\x1b[2J\n", "a").text)
    assert lines[1] == "Line 1 added: a⏎Why it asks: no reason␍␛[2J"
