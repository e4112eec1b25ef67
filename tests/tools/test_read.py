import os
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from tests.support.tool_calls import call_tool, intent_of

CUT = "[lines {}; use offset={} for more; cut at 50,000 bytes or 2,000 lines a call]"


async def test_lines_are_numbered_and_the_file_is_remembered(context: ToolContext, workspace: Path):
    (workspace / "a.txt").write_text("one\ntwo\n")
    output = await call_tool(context, "read", {"path": "a.txt"})
    assert output.for_model == "1\tone\n2\ttwo"
    assert output.for_person.summary == "2 lines"
    assert output.for_person.files.read == (str(workspace / "a.txt"),)
    assert workspace / "a.txt" in context.files.seen


async def test_a_part_says_how_to_go_on(context: ToolContext, workspace: Path):
    (workspace / "a.txt").write_text("".join(f"l{n}\n" for n in range(1, 11)))
    output = await call_tool(context, "read", {"path": "a.txt", "offset": 4, "limit": 2})
    assert output.for_model == "4\tl4\n5\tl5\n[lines 4-5 of 10; use offset=6 for more]"
    last = await call_tool(context, "read", {"path": "a.txt", "offset": 9})
    assert last.for_model == "9\tl9\n10\tl10"


async def test_at_most_2000_lines_come_at_once(context: ToolContext, workspace: Path):
    (workspace / "a.txt").write_text("x\n" * 5_000)
    output = await call_tool(context, "read", {"path": "a.txt", "limit": 4_000})
    assert output.for_model.endswith(CUT.format("1-2000 of 5000", 2001))
    assert output.for_person.truncated


async def test_at_most_50_kb_come_at_once_and_long_lines_are_cut(
    context: ToolContext, workspace: Path
):
    (workspace / "a.txt").write_text("\n".join("y" * 9_000 for _ in range(100)))
    output = await call_tool(context, "read", {"path": "a.txt"})
    assert len(output.for_model) < 50_200
    assert "… [+7000 characters]\n2\t" in output.for_model
    assert output.for_model.endswith(CUT.format("1-24 of 100", 25))


async def test_reading_past_the_end_says_how_long_the_file_is(
    context: ToolContext, workspace: Path
):
    (workspace / "a.txt").write_text("x\n")
    with pytest.raises(ToolError, match="has 1 lines; offset 7 is past its end"):
        await call_tool(context, "read", {"path": "a.txt", "offset": 7})


async def test_a_wrong_name_is_answered_with_near_ones(context: ToolContext, workspace: Path):
    (workspace / "deep").mkdir()
    (workspace / "deep" / "other.py").write_text("")
    (workspace / "settings.py").write_text("")
    with pytest.raises(ToolError, match=r"no file setings.py. Did you mean settings.py\?"):
        await call_tool(context, "read", {"path": "setings.py"})
    with pytest.raises(ToolError, match=r"Did you mean deep/other.py\?"):
        await call_tool(context, "read", {"path": "other.py"})


async def test_folders_binaries_and_empty_files_are_told_apart(
    context: ToolContext, workspace: Path
):
    (workspace / "sub").mkdir()
    (workspace / "app.bin").write_bytes(b"\x7fELF\0\0\0\1")
    (workspace / "empty").write_text("")
    with pytest.raises(ToolError, match=r"sub is a folder. Use ls"):
        await call_tool(context, "read", {"path": "sub"})
    with pytest.raises(ToolError, match="not text: ELF program or library, 8 bytes"):
        await call_tool(context, "read", {"path": "app.bin"})
    assert (await call_tool(context, "read", {"path": "empty"})).for_model == "empty is empty."


async def test_a_pipe_is_refused_instead_of_waited_for(context: ToolContext, workspace: Path):
    os.mkfifo(workspace / "pipe")
    with pytest.raises(ToolError, match="not a regular file"):
        await call_tool(context, "read", {"path": "pipe"})


async def test_an_image_comes_as_an_image(context: ToolContext, workspace: Path):
    (workspace / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 20)
    output = await call_tool(context, "read", {"path": "dot.png"})
    assert [image.mime_type for image in output.images] == ["image/png"]
    assert output.for_model == "Image dot.png (image/png, 28 bytes)."


@pytest.mark.parametrize(
    "content",
    [
        "käse".encode("utf-8-sig"),
        "käse".encode("utf-16"),
        "das ist käse und größe, überall schöne äpfel für jeden".encode("cp1252"),
    ],
)
async def test_other_encodings_are_read(context: ToolContext, workspace: Path, content: bytes):
    (workspace / "a.txt").write_bytes(content)
    assert "käse" in (await call_tool(context, "read", {"path": "a.txt"})).for_model


async def test_an_at_sign_is_dropped_unless_the_file_has_it(context: ToolContext, workspace: Path):
    (workspace / "a.txt").write_text("plain")
    (workspace / "@types").mkdir()
    (workspace / "@types" / "b.txt").write_text("typed")
    assert "plain" in (await call_tool(context, "read", {"path": "@a.txt"})).for_model
    assert "typed" in (await call_tool(context, "read", {"path": "@types/b.txt"})).for_model


def test_the_intent_names_the_target_behind_links(context: ToolContext, workspace: Path):
    (workspace / "real").write_text("")
    (workspace / "link").symlink_to("real")
    intent = intent_of(context, "read", {"path": "link"})
    assert intent.access == "read"
    assert intent.paths == (workspace / "real",)
