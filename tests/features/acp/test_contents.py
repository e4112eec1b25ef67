from pathlib import Path
from typing import Any

from agent_tui.events import ApprovalRequest
from agent_tui.features.acp.contents import fence, file_diffs, in_lines, question_contents
from agent_tui.tools.files.diffs import unified_diff


def request(body: str, kind: Any, reason: str = "changes a file") -> ApprovalRequest:
    return ApprovalRequest("1", "c", "t", "t", body, kind, reason, session_rule="")


def asked(body: str, kind: str, folder: Path, reason: str = "changes a file") -> list[Any]:
    return list(question_contents(request(body, kind, reason), folder))


def test_a_block_is_not_ended_by_what_is_in_it():
    assert fence("ls\n", "sh") == "```sh\nls\n```"
    assert fence("a\n```\nb") == "````\na\n```\nb\n````"
    assert in_lines("a\nb") == "a  \nb"


def test_a_change_is_asked_about_with_both_sides(tmp_path: Path):
    (tmp_path / "a.py").write_text("x = 1\n" * 9)
    diff = unified_diff("x = 1\n" * 9, "x = 1\n" * 8 + "y\n", "a.py").text
    new = unified_diff("", "z\n", "b/c.py").text
    changed, made, why = asked(diff + new, "diff", tmp_path)
    assert why.content.text == "changes a file"
    assert (changed.old_text, changed.new_text) == (
        "x = 1\n" * 9,
        "x = 1\n" * 8 + "y\n",
    )
    assert (made.path, made.old_text, made.new_text) == (
        str(tmp_path / "b/c.py"),
        None,
        "z\n",
    )


def test_a_change_of_other_text_than_is_on_the_disk_is_shown_as_it_is(tmp_path: Path):
    (tmp_path / "a.py").write_text("other\n")
    diff = unified_diff("x\n", "y\n", "a.py").text
    (shown,) = asked(diff, "diff", tmp_path, "")
    assert shown.content.text == fence(diff, "diff")
    (command,) = asked("rm -r *", "command", tmp_path, "")
    assert command.content.text == "```sh\nrm -r *\n```"


def test_a_change_that_was_made_is_told_with_both_sides(tmp_path: Path):
    (tmp_path / "a.py").write_text("y\n")
    diff = unified_diff("x\n", "y\n", "a.py").text
    made: Any = file_diffs(diff, tmp_path)[0]
    assert (made.old_text, made.new_text) == ("x\n", "y\n")
    assert file_diffs(unified_diff("x\n", "z\n", "a.py").text, tmp_path) == []
