from pydantic import JsonValue

from agent_tui.compaction.ledger.files import (
    FileOperations,
    Touched,
    cap_lists,
    files_of,
    normalise_path,
)
from agent_tui.compaction.sections.history import Done
from agent_tui.messages import ToolCall
from agent_tui.sessions.actions import Output
from agent_tui.sessions.outputs import action_of
from tests.support.rows import each_row

SEEN = ("/project/new.py", "/project/a.py")


@each_row(
    ("path", "normal"),
    [
        ("src/a.py", "src/a.py"),
        ("./src/../a.py", "a.py"),
        ("@src/a.py", "src/a.py"),
        ("/project/src/a.py", "src/a.py"),
        ("/real/project/src/a.py", "src/a.py"),
        ("../b.py", "/b.py"),
        ("/projects/c.py", "/projects/c.py"),
        ("/etc/hosts", "/etc/hosts"),
        ("/project", ""),
        ("", ""),
        ("a\nb", ""),
    ],
)
def test_every_form_of_a_path_becomes_one(path: str, normal: str):
    assert normalise_path(path, ("/project", "/real/project")) == normal


def test_lists_are_sorted_and_whole_when_they_fit():
    files = FileOperations(read=("b", "a"), modified=("d", "c"))
    assert cap_lists(files, 100) == (["a", "b"], ["c", "d"])


def test_read_files_are_left_out_first_and_counted():
    files = FileOperations(
        read=tuple(f"read{n:04d}" for n in range(50)),
        modified=tuple(f"mod{n:05d}" for n in range(10)),
    )
    read, modified = cap_lists(files, 9 * 15)
    assert modified == sorted(files.modified)
    assert read == [*files.read[:5], "+45 more"]


def test_modified_files_are_left_out_last_and_counted():
    files = FileOperations(read=("r",), modified=tuple(f"mod{n:05d}" for n in range(10)))
    read, modified = cap_lists(files, 27)
    assert read == ["+1 more"]
    assert modified == ["mod00000", "mod00001", "mod00002", "+7 more"]


def done(tool: str, *, has_failed: bool = False, text: str = "", **arguments: JsonValue) -> Done:
    action = action_of(ToolCall(id="c", name=tool, arguments=arguments))
    return Done("e", Output(action, text, has_failed), SEEN)


def test_a_command_touched_what_it_says_and_what_it_was_seen_to_change():
    touched = files_of(done("bash", command="cat b.py > ignored.txt; rm old.py"))
    assert touched == Touched(("b.py",), ("ignored.txt", *SEEN), ("old.py",))


def test_a_failed_command_touched_what_it_was_seen_to_change_and_nothing_else():
    assert files_of(done("bash", has_failed=True, command="cat b.py > no.txt")) == Touched((), SEEN)


def test_any_other_tool_that_failed_touched_nothing():
    assert files_of(done("edit", has_failed=True, path="a.py")) == Touched()
    refused = "No replacement was performed, as the text was not found."
    assert files_of(done("str_replace_editor", text=refused, path="a.py")) == Touched()


def test_files_of_other_tools_are_told_by_name_and_arguments():
    assert files_of(done("read_many_files", paths=["a", "b"])) == Touched(read=("a", "b"))
    patch = "*** Update File: a\n+x\n*** Delete File: b\n"
    assert files_of(done("apply_patch", input=patch)) == Touched((), ("a", "b", *SEEN), ("b",))
    shown = "[File: /w/open.py (3 lines total)]\n1:x"
    assert files_of(done("edit", text=shown, replacement="x")).modified == ("/w/open.py", *SEEN)
