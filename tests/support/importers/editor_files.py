"""Which files the editing tools of research agents touched, told by call and output."""

import re

from agent_tui.messages import FileTouches, JsonObject, ToolDetails
from agent_tui.sessions.importers.fields import text_at

_ONE_EDITOR = frozenset({"str_replace_editor", "str_replace_based_edit_tool"})
"""Anthropic's editor: one tool, the kind of work in ``command``."""

_OPENERS = frozenset({"open", "open_file", "read"})
_WRITERS = frozenset({"create", "create_file", "write"})
_EDITORS = frozenset(
    {
        "append_file",
        "edit",
        "edit_file_by_replace",
        "insert",
        "insert_content_at_line",
    }
)
_SHOWN_FILE = re.compile(r"\[File: (\S.{0,1000}?) \(\d+ lines total")
_LISTING = "Here's the files and directories"
_PYTHON_CALL = re.compile(r"^\s*(\w+)\(\s*(?:\w+\s*=\s*)?(['\"])([^'\"\n]{1,1000})\2", re.MULTILINE)
_REFUSED = re.compile(
    r"\s*(?:ERROR:|No replacement was performed|\[?Your proposed edit has introduced)"
)


def is_refused_edit(output: str) -> bool:
    """Whether `output` is the editor's refusal, which no exit code tells."""
    return _REFUSED.match(output) is not None


def editor_details(
    tool: str, arguments: JsonObject, output: str, exit_code: int | None
) -> ToolDetails:
    """The files one successful call touched, and how the command ended.

    Args:
        tool: Name of the tool.
        arguments: What it was called with.
        output: What came of it; it names the file where the call works on an open one.
        exit_code: Of a command, where it is known.
    """
    return ToolDetails(exit_code=exit_code, files=_files(tool, arguments, output))


def _files(tool: str, arguments: JsonObject, output: str) -> FileTouches:
    path = text_at(arguments, "path", "file_path", "filename")
    if tool in _ONE_EDITOR:
        return _one_editor(text_at(arguments, "command"), path, output)
    if code := text_at(arguments, "code"):
        return _python_calls(code, output)
    if not path and tool in _EDITORS and (shown := _SHOWN_FILE.search(output)):
        path = shown[1]
    return _touch(tool, path)


def _one_editor(command: str, path: str, output: str) -> FileTouches:
    if command == "view":
        is_folder = output.lstrip().startswith(_LISTING)
        return FileTouches(read=(path,) if path and not is_folder else ())
    return _touch("create" if command == "create" else "edit", path)


def _python_calls(code: str, output: str) -> FileTouches:
    """Calls of editing functions in a notebook cell, as OpenHands has them."""
    if is_refused_edit(output):
        return FileTouches()
    touched = [_touch(found[1], found[3]) for found in _PYTHON_CALL.finditer(code)]
    return FileTouches(
        read=tuple(path for files in touched for path in files.read),
        written=tuple(path for files in touched for path in files.written),
        edited=tuple(path for files in touched for path in files.edited),
    )


def _touch(tool: str, path: str) -> FileTouches:
    if not path:
        return FileTouches()
    return FileTouches(
        read=(path,) if tool in _OPENERS else (),
        written=(path,) if tool in _WRITERS else (),
        edited=(path,) if tool in _EDITORS else (),
    )
