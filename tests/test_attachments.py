"""What goes along with a message is told apart from what was typed."""

from pathlib import Path

from agent_tui.agent.prompt.mentions import attach
from agent_tui.attachments import (
    AttachedFile,
    earlier_work_block,
    find_attached_files,
    instructions_block,
    without_attachments,
    without_instructions,
)


def test_attached_files_are_read_back(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n\n\n<b>\ny = 2\n")
    (tmp_path / "plan & all.md").write_text("1. first\n")
    typed = 'Look at @a.py:5-5, @a.py and @"plan & all.md"'
    text = attach(typed, tmp_path).text
    assert without_attachments(text) == typed
    assert list(find_attached_files(text)) == [
        AttachedFile("a.py", 5, "y = 2", is_whole=False),
        AttachedFile("a.py", 1, "x = 1\n\n\n<b>\ny = 2", is_whole=True),
        AttachedFile("plan & all.md", 1, "1. first", is_whole=True),
    ]


def test_of_a_large_file_what_went_along_is_a_part(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("line\n" * 100_000)
    (file,) = find_attached_files(attach("@a.txt", tmp_path).text)
    assert not file.is_whole
    assert set(file.text.split("\n")) == {"line"}


def test_a_block_that_was_typed_is_no_attachment() -> None:
    typed = 'What does this mean?\n\n<file path="a.py">\nx\n</file>'
    assert without_attachments(typed) == typed
    assert list(find_attached_files(typed)) == []


def test_a_hint_is_no_part_of_what_was_typed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    for typed in ("Go on", "Go on with @a.py"):
        text = attach(typed, tmp_path).text
        hinted = f"{text}\n\n{earlier_work_block(['a session with </earlier-work> in it'])}"
        assert without_attachments(hinted) == typed
        assert list(find_attached_files(hinted)) == list(find_attached_files(text))


def test_instructions_that_were_typed_are_the_persons() -> None:
    typed = "Mend it\n\n<instructions>\nReplace only the first.\n</instructions>\n\n<more>"
    assert without_attachments(typed) == without_instructions(typed) == typed
    commanded = f"{typed}\n\n{instructions_block('Read the README first.')}"
    assert without_attachments(commanded) == without_instructions(commanded) == typed
