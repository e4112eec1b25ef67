from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.events import ApprovalRequest
from agent_tui.safe_text import safe_text
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.ui.approval_panel import approval_lines
from agent_tui.ui.styled_lines import MAX_LINE_CHARS
from agent_tui.ui.theme.palette import Palette


def request(
    body: str, kind: Literal["diff", "command"] = "diff", title: str = "edit a.py (+1 -1)"
) -> ApprovalRequest:
    return ApprovalRequest("r", "c", "edit", title, body, kind, "why", "")


def shown(asked: ApprovalRequest, width: int = 30) -> list[str]:
    return [line.row.rstrip() for line in approval_lines(asked, width, Palette())]


def test_a_diff_has_its_numbers_and_no_header_that_repeats_the_title():
    body = unified_diff("one\ntwo\n", "one\nTWO\n", "a.py").text
    assert shown(request(body)) == ["1   one", "2 - two", "2 + TWO"]
    assert shown(request(body, title="b.py"))[:2] == ["a.py", "1   one"]


def test_files_of_a_patch_have_one_head_each_and_new_ones_say_so():
    diffs = [unified_diff("", "one\n", "a.py"), unified_diff("one\n", "", "b.py")]
    diffs.append(unified_diff("one\n", "two\n", "c.py"))
    rows = shown(request("".join(diff.text for diff in diffs), title="patch a.py, b.py, c.py"))
    assert rows[:4] == ["a.py  new file", "1 + one", "b.py  deleted", "1 - one"]
    assert rows[4:] == ["c.py", "1 - one", "1 + two"]


def test_another_name_in_the_head_is_shown():
    body = "--- a.py\n+++ b.py\n@@ -1 +1 @@\n-one\n+two\n"
    assert shown(request(body, title="edit b.py"))[:2] == ["--- a.py", "+++ b.py"]


def test_what_a_diff_says_about_the_end_of_the_file_is_shown():
    body = unified_diff("one\n", "one", "a.py").text
    assert any("No newline at end of file" in row for row in shown(request(body), 60))


def test_an_overlong_line_is_wrapped_and_not_cut():
    line = "x" * (3 * MAX_LINE_CHARS) + "; rm everything"
    diff = unified_diff("", line + "\n", "a.py").text
    for asked in (request(diff), request(line, "command")):
        assert "".join(row.lstrip("1+$ ") for row in shown(asked, 80)) == line


tricky = st.text(st.sampled_from("ab \t日\u0301[]-+@\\\x1b\r\u202e\u200b\ud800$"), max_size=60)


@settings(max_examples=200, deadline=None)
@given(st.lists(tricky, max_size=8), st.integers(8, 60))
def test_every_added_character_is_on_the_screen(lines: list[str], width: int):
    body = unified_diff("", "\n".join(lines), "a.py").text
    rows = approval_lines(request(body), width, Palette())
    drawn = "".join(line.text for line in rows)
    for line in lines:
        assert safe_text(line, keep_newlines=False) in drawn
    assert all(line.cells <= max(width, 6) for line in rows)


def test_a_command_keeps_its_lines():
    assert shown(request("ls\nrm x", "command")) == ["$ ls", "  rm x"]
