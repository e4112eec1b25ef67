"""What a conversation changed in files, told from its entries and the files themselves."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.review.edit_history import file_edits, find_changed_files
from agent_tui.messages import (
    AssistantMessage,
    FileTouches,
    Message,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.tools.files.diffs import before_diff, diffs_by_file, unified_diff

texts = st.lists(st.sampled_from(["a", "b", "- c", "-- d", "+ e", "", "\\ f"]), max_size=14).map(
    "\n".join
)


@given(texts, texts)
def test_a_change_can_be_taken_back_by_its_diff(before: str, after: str):
    assert before_diff(after, unified_diff(before, after, "x").text) == before


@given(texts, texts)
def test_diffs_of_several_files_come_apart_again(before: str, after: str):
    one, two = unified_diff(before, after, "one").text, unified_diff(after, before, "two").text
    parts = diffs_by_file(one + two)
    assert [(part.name, part.text) for part in parts] == (
        [("one", one), ("two", two)] if one else []
    )


def test_what_grew_above_a_change_is_no_hindrance_but_a_change_of_its_lines_is():
    before = "".join(f"{n}\n" for n in range(20))
    after = before.replace("15\n", "fifteen\n")
    diff = unified_diff(before, after, "x").text
    assert before_diff("new\nnew\n" + after, diff) == "new\nnew\n" + before
    assert before_diff(after.replace("fifteen", "XV"), diff) is None


class Session:
    """Entries, written as a conversation would."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, message: Message) -> None:
        self.entries.append(MessageEntry(message=message))

    def ask(self, text: str) -> None:
        self.add(UserMessage(content=text))

    def change(self, path: Path, text: str) -> None:
        """Write the file and record it as the tools do."""
        before = path.read_text() if path.exists() else ""
        path.write_text(text)
        diff = unified_diff(before, text, path.name).text
        self.result("write", {"path": path.name}, ToolDetails(diff=diff))

    def run(self, command: str, *changed: Path) -> None:
        files = FileTouches(written=tuple(map(str, changed)))
        self.result("bash", {"command": command}, ToolDetails(files=files))

    def result(self, tool: str, arguments: dict[str, str], details: ToolDetails) -> None:
        call = ToolCall(id=f"c{len(self.entries)}", name=tool, arguments=dict(arguments))
        self.add(AssistantMessage(content=(call,)))
        shown = details.model_dump(mode="json", exclude_defaults=True, by_alias=True)
        self.add(ToolResultMessage(tool_call_id=call.id, tool_name=tool, details=shown))


def test_all_edits_of_a_file_come_to_one_diff_and_each_knows_its_turn(tmp_path: Path):
    session, a = Session(), tmp_path / "a.py"
    a.write_text("one\ntwo\n")
    session.ask("first")
    session.change(a, "ONE\ntwo\n")
    session.ask("second")
    session.change(a, "ONE\ntwo\nthree\n")
    session.change(tmp_path / "b.py", "new\n")
    edits = file_edits(session.entries)
    assert [(edit.name, edit.turn, edit.asked) for edit in edits] == [
        ("a.py", 1, "first"),
        ("a.py", 2, "second"),
        ("b.py", 2, "second"),
    ]
    first, second = find_changed_files(edits, tmp_path)
    assert (first.path, first.is_whole) == (a, True)
    assert first.diff == unified_diff("one\ntwo\n", "ONE\ntwo\nthree\n", "a.py").text
    assert second.diff == unified_diff("", "new\n", "b.py").text


def test_a_file_that_was_changed_and_changed_back_has_no_diff(tmp_path: Path):
    session, a = Session(), tmp_path / "a.py"
    a.write_text("one\n")
    session.change(a, "two\n")
    session.change(a, "one\n")
    (changed,) = find_changed_files(file_edits(session.entries), tmp_path)
    assert (changed.diff, changed.is_whole) == ("", True)


def test_edits_stand_one_by_one_where_somebody_else_changed_their_lines(tmp_path: Path):
    session, a = Session(), tmp_path / "a.py"
    session.change(a, "one\n")
    session.change(a, "one\ntwo\n")
    a.write_text("something else\n")
    (changed,) = find_changed_files(file_edits(session.entries), tmp_path)
    assert not changed.is_whole
    assert changed.diff == "".join(edit.diff for edit in changed.edits)


def test_files_that_a_command_changed_are_named_with_it(tmp_path: Path):
    session, a = Session(), tmp_path / "a.py"
    a.write_text("one\n")
    session.ask("format")
    session.run("black .", a)
    (changed,) = find_changed_files(file_edits(session.entries), tmp_path)
    assert (changed.path, changed.commands, changed.diff) == (a, ("black .",), "")


def test_a_link_in_place_of_a_folder_shows_nothing_of_its_target(tmp_path: Path):
    session, folder, outside = Session(), tmp_path / "sub", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "a.py").write_text("outside_key\n")
    session.result("write", {"path": "sub/a.py"}, ToolDetails(diff="--- sub/a.py\n+++ sub/a.py\n"))
    folder.rmdir()
    folder.symlink_to(outside)
    (changed,) = find_changed_files(file_edits(session.entries), tmp_path)
    assert (changed.is_whole, "outside_key" in changed.diff) == (False, False)
