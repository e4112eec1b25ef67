import pytest
from pydantic import JsonValue

from agent_tui.compaction.ledger.files import (
    FileOperations,
    capped_lists,
    normalise_path,
    touched_by_person,
    touched_files,
)
from agent_tui.messages import (
    BashExecutionMessage,
    FileTouches,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
)

SEEN = FileTouches(written=("/project/new.py",), edited=("/project/a.py",))


@pytest.mark.parametrize(
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
    assert capped_lists(files, 100) == (["a", "b"], ["c", "d"])


def test_read_files_are_left_out_first_and_counted():
    files = FileOperations(
        read=tuple(f"read{n:04d}" for n in range(50)),
        modified=tuple(f"mod{n:05d}" for n in range(10)),
    )
    read, modified = capped_lists(files, 9 * 15)
    assert modified == sorted(files.modified)
    assert read == [*files.read[:5], "+45 more"]


def test_modified_files_are_left_out_last_and_counted():
    files = FileOperations(read=("r",), modified=tuple(f"mod{n:05d}" for n in range(10)))
    read, modified = capped_lists(files, 27)
    assert read == ["+1 more"]
    assert modified == ["mod00000", "mod00001", "mod00002", "+7 more"]


def result(name: str, details: JsonValue, *, is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id="c", tool_name=name, is_error=is_error, details=details)


def seen(files: FileTouches) -> JsonValue:
    return ToolDetails(files=files).model_dump(mode="json", by_alias=True)


def test_a_command_touched_what_it_says_and_what_it_was_seen_to_change():
    call = ToolCall(id="c", name="bash", arguments={"command": "cat b.py > ignored.txt"})
    touched = touched_files(result("bash", seen(SEEN)), call)
    assert touched.read == ("b.py",)
    assert touched.written == ("ignored.txt", "/project/new.py")
    assert touched.edited == ("/project/a.py",)


def test_a_failed_command_touched_what_it_was_seen_to_change_and_nothing_else():
    call = ToolCall(id="c", name="bash", arguments={"command": "cat b.py > never.txt"})
    assert touched_files(result("bash", seen(SEEN), is_error=True), call) == SEEN
    assert touched_files(result("bash", None, is_error=True), call) == FileTouches()


def test_any_other_tool_that_failed_touched_nothing():
    assert touched_files(result("edit", seen(SEEN), is_error=True), None) == FileTouches()


def test_a_command_of_the_persons_touched_files_like_the_tools():
    message = BashExecutionMessage(
        command="cat b.py > ignored.txt", output="", exit_code=0, files=SEEN
    )
    assert touched_by_person(message).written == ("ignored.txt", "/project/new.py")
    assert touched_by_person(message.model_copy(update={"exit_code": 1})) == SEEN
    stopped = message.model_copy(update={"exit_code": None, "files": None})
    assert touched_by_person(stopped) == FileTouches()
