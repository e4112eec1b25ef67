"""What Claude Code notes beside a tool's result, as details in our terms."""

import re

from pydantic import JsonValue

from agent_tui.messages import FileTouches, JsonObject, ToolDetails
from agent_tui.sessions.importers.fields import (
    as_count,
    as_list,
    as_object,
    as_text,
    text_at,
    todos_in,
)

_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d{1,3})\b")
_EDITORS = frozenset({"Edit", "MultiEdit", "NotebookEdit"})


_NOTED = ("file", "filePath", "newTodos", "structuredPatch")


def noted_facts(noted: JsonValue) -> JsonObject:
    """What is used of ``toolUseResult``; the rest of it is whole files, before and after."""
    facts = {key: value for key, value in as_object(noted).items() if key in _NOTED}
    if "file" in facts:
        facts["file"] = {"filePath": text_at(as_object(facts["file"]), "filePath")}
    return facts


def claude_details(
    tool: str, arguments: JsonObject, noted: JsonObject, text: str, *, is_error: bool
) -> ToolDetails:
    """Files, change, plan and exit code of one call.

    Args:
        tool: Name of the tool.
        arguments: What it was called with.
        noted: See `noted_facts`.
        text: The result as the model saw it.
        is_error: The call failed; it touched no file then.
    """
    if tool == "Bash":
        return ToolDetails(exit_code=_exit_code(text, is_error=is_error))
    if is_error:
        return ToolDetails()
    path = text_at(noted, "filePath") or text_at(as_object(noted.get("file")), "filePath")
    path = path or text_at(arguments, "file_path", "notebook_path")
    files = FileTouches(
        read=(path,) if path and tool == "Read" else (),
        written=(path,) if path and tool == "Write" else (),
        edited=(path,) if path and tool in _EDITORS else (),
    )
    return ToolDetails(
        diff=_diff(path, as_list(noted.get("structuredPatch"))) or None,
        files=files,
        todos=todos_in(noted.get("newTodos"), "content") if tool == "TodoWrite" else None,
    )


def _exit_code(text: str, *, is_error: bool) -> int | None:
    if not is_error:
        return 0
    found = _EXIT_CODE.match(text)
    return int(found[1]) if found else None


def _diff(path: str, hunks: list[JsonValue]) -> str:
    """A unified diff of the hunks; empty without any."""
    lines: list[str] = []
    for hunk in map(as_object, hunks):
        old = f"-{as_count(hunk.get('oldStart'))},{as_count(hunk.get('oldLines'))}"
        new = f"+{as_count(hunk.get('newStart'))},{as_count(hunk.get('newLines'))}"
        lines += [f"@@ {old} {new} @@", *map(as_text, as_list(hunk.get("lines")))]
    return "\n".join([f"--- {path}", f"+++ {path}", *lines, ""]) if lines else ""
