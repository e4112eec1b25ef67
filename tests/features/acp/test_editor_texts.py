from pathlib import Path
from typing import Any

import pytest
from acp.schema import FileSystemCapabilities

from agent_tui.errors import ToolError
from agent_tui.features.acp.editor import EditorTexts
from agent_tui.tools.base import ToolContext
from agent_tui.tools.edit import EditArguments, EditTool
from agent_tui.tools.files.memory import FileMemory
from agent_tui.tools.read import ReadArguments, ReadTool
from agent_tui.tools.write import WriteArguments, WriteTool
from tests.support.editor import Editor, Place, say
from tests.support.openai_server import Call, Reply


class Desk:
    """Tools at work in a folder that an editor has open."""

    def __init__(self, root: Path, *, reads: bool = True, writes: bool = True) -> None:
        self.root = root / "work"
        self.root.mkdir()
        self.editor = Editor(buffers={})
        client: Any = self.editor
        offered = FileSystemCapabilities(read_text_file=reads, write_text_file=writes)
        self.context = ToolContext(
            cwd=self.root,
            emit=lambda _text, _skipped=0: None,
            files=FileMemory(),
            output_dir=root / "outputs",
            environ={},
            todos=[],
            open_texts=EditorTexts(client, "s", self.root, offered),
        )

    def put(self, name: str, content: bytes, unsaved: str | None = None) -> Path:
        path = self.root / name
        path.write_bytes(content)
        if unsaved is not None and self.editor.buffers is not None:
            self.editor.buffers[str(path)] = unsaved
        return path

    async def read(self, name: str) -> str:
        return (await ReadTool().run(ReadArguments(path=name), self.context)).for_model

    async def edit(self, name: str, old: str, new: str) -> str:
        arguments = EditArguments.model_validate(
            {"path": name, "edits": [{"old": old, "new": new}]}
        )
        return (await EditTool().run(arguments, self.context)).for_model

    async def write(self, name: str, content: str) -> None:
        await WriteTool().run(WriteArguments(path=name, content=content), self.context)


async def test_unsaved_text_is_read_and_edits_go_to_the_editor(tmp_path: Path):
    desk = Desk(tmp_path)
    path = desk.put("a.py", b"x = 1\n", unsaved="x = 1\ny = 1\n")
    assert "y = 1" in await desk.read("a.py")
    await desk.edit("a.py", "y = 1", "y = 2")
    assert desk.editor.wrote == [(str(path), "x = 1\ny = 2\n")]


async def test_what_the_person_types_meanwhile_is_noticed(tmp_path: Path):
    desk = Desk(tmp_path)
    desk.put("a.py", b"x = 1\n", unsaved="x = 1\n")
    await desk.read("a.py")
    desk.put("a.py", b"x = 1\n", unsaved="x = 1  # mine\n")
    with pytest.raises(ToolError, match="has changed since you read it"):
        await desk.write("a.py", "x = 2\n")
    assert desk.editor.wrote == []


@pytest.mark.parametrize("shown", ["a\nb\n", "a\nb"])
async def test_line_endings_that_an_editor_hides_are_kept(tmp_path: Path, shown: str):
    desk = Desk(tmp_path)
    path = desk.put("a.txt", b"a\r\nb\r\n", unsaved=shown)
    await desk.read("a.txt")
    await desk.edit("a.txt", "a\nb", "a\nc")
    assert path.read_bytes() == b"a\r\nc\r\n"
    desk.put("a.txt", path.read_bytes(), unsaved="a\nc\nd\n")
    await desk.edit("a.txt", "d", "e")
    assert path.read_bytes() == b"a\r\nc\r\ne\r\n"


@pytest.mark.parametrize(
    "content", [b"caf\xe9 au lait, d\xe9j\xe0 vu\n" * 9, b"\xef\xbb\xbfcafe\n", b"\0\1\n"]
)
async def test_other_encodings_are_left_to_the_disk(tmp_path: Path, content: bytes):
    desk = Desk(tmp_path)
    path = desk.put("a.txt", content, unsaved="other")
    assert desk.context.open_texts.present(path, content) == content
    assert not desk.context.open_texts.take(path, content)


async def test_files_outside_the_folder_and_those_it_does_not_show_are_on_the_disk(tmp_path: Path):
    desk = Desk(tmp_path)
    desk.put("a.py", b"1\n")
    assert "1" in await desk.read("a.py")
    outside = tmp_path / "b.py"
    await desk.write(str(outside), "2\n")
    assert (outside.read_text(), desk.editor.wrote) == ("2\n", [])
    await desk.write("new/c.py", "3\n")
    assert desk.editor.wrote == [(str(desk.root / "new/c.py"), "3\n")]


async def test_a_refusal_of_the_editor_is_the_last_word(tmp_path: Path):
    desk = Desk(tmp_path)
    path = desk.put("a.py", b"1\n", unsaved="1\n")
    desk.editor.refuses = (str(path),)
    await desk.read("a.py")
    with pytest.raises(ToolError, match="the editor refused"):
        await desk.edit("a.py", "1", "2")
    assert path.read_bytes() == b"1\n"


async def test_an_editor_that_is_gone_is_told(tmp_path: Path):
    desk = Desk(tmp_path)
    desk.put("a.py", b"1\n")

    async def gone(**_given: Any) -> None:
        raise ConnectionError("Connection closed")

    vars(desk.editor)["read_text_file"] = gone
    with pytest.raises(ToolError, match="the editor did not answer"):
        await desk.read("a.py")


@pytest.mark.parametrize(("reads", "writes"), [(True, False), (False, True)])
async def test_only_what_is_offered_is_asked_for(tmp_path: Path, reads: bool, writes: bool):
    desk = Desk(tmp_path, reads=reads, writes=writes)
    path = desk.put("a.py", b"1\n", unsaved="2\n")
    read = await desk.read("a.py")
    assert ("2" in read) == reads
    await desk.edit("a.py", "2" if reads else "1", "3")
    assert path.read_text() == "3\n"
    assert bool(desk.editor.wrote) == writes


@pytest.mark.thorough
async def test_a_session_works_in_the_buffers_and_undo_gives_unsaved_text_back(place: Place):
    path = place.work / "a.py"
    path.write_text("x = 1\n")
    place.server.play(
        Reply(tool_calls=(Call("read", {"path": "a.py"}),)),
        Reply(tool_calls=(Call("edit", {"path": "a.py", "old_text": "y = 1", "new_text": "z"}),)),
        Reply(text="Done."),
    )
    buffers = {str(path): "x = 1\ny = 1\n"}
    async with place.editor("once", buffers=buffers) as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        assert await say(connection, begun.session_id, "Go.") == "end_turn"
        assert editor.wrote == [(str(path), "x = 1\nz\n")]
        await say(connection, begun.session_id, "/undo files")
        assert path.read_text() == "x = 1\ny = 1\n", editor.text()


@pytest.mark.thorough
async def test_an_editor_that_would_lose_what_is_not_saved_is_not_written_through(place: Place):
    path = place.work / "a.py"
    path.write_text("x = 1\n")
    place.server.play(
        Reply(tool_calls=(Call("read", {"path": "a.py"}),)),
        Reply(tool_calls=(Call("edit", {"path": "a.py", "old_text": "x", "new_text": "z"}),)),
        Reply(text="Done."),
    )
    buffers = {str(path): "x = 1\n"}
    name = "CodeCompanion.nvim"
    async with place.editor("once", buffers=buffers, name=name) as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        assert await say(connection, begun.session_id, "Go.") == "end_turn"
        assert (path.read_text(), editor.wrote) == ("z = 1\n", [])
