"""The parts, calls and results in sessions of Gemini CLI, in our form."""

import re
from collections.abc import Callable

from pydantic import JsonValue

from agent_tui.features.importers.diffs import creation, with_header
from agent_tui.features.importers.values import todos_in
from agent_tui.messages import (
    FileTouches,
    ImageContent,
    JsonObject,
    TextContent,
    ToolDetails,
    UserContent,
)
from agent_tui.sessions.importers.builder import WarnOf
from agent_tui.sessions.importers.fields import as_list, as_object, as_text, text_at

_EXIT_CODE = re.compile(r"^Exit Code: (\d{1,3})$", re.MULTILINE)
_SHELL = "run_shell_command"
_EDITORS = frozenset({"replace", "write_file"})
_CREATED = "Successfully created and wrote to new file"
_NOT_SHOWN = frozenset({"functionResponse", "functionCall"})


def said_parts(content: JsonValue, warn: WarnOf) -> list[UserContent]:
    """Text and images of a message or a result; `warn` gets what is neither."""
    if isinstance(content, str):
        return [TextContent(text=content)] if content else []
    parts: list[UserContent] = []
    for part in [content] if isinstance(content, dict) else as_list(content):
        if isinstance(part, str):
            parts.append(TextContent(text=part))
            continue
        facts = as_object(part)
        inline = as_object(facts.get("inlineData"))
        kind = text_at(inline, "mimeType")
        if text := text_at(facts, "text"):
            parts.append(TextContent(text=text))
        elif kind.startswith("image/"):
            parts.append(ImageContent(data=text_at(inline, "data"), mime_type=kind))
        elif facts and not _NOT_SHOWN & facts.keys() and "text" not in facts:
            warn(f"a part of unknown kind {kind or next(iter(facts))[:40]!r}; left out")
    return parts


def result_of(call: JsonObject, warn: WarnOf) -> tuple[list[UserContent], bool]:
    """What the model was told of a call, and whether it failed."""
    is_error = call.get("status") in ("error", "cancelled")
    written = call.get("result")
    content: list[UserContent] = []
    for part in [written] if isinstance(written, (dict, str)) else as_list(written):
        told = as_object(as_object(part).get("functionResponse"))
        if not told:
            content += said_parts([part], warn)
            continue
        response = as_object(told.get("response"))
        text = text_at(response, "output", "error", "content")
        is_error = is_error or (not response.get("output") and bool(text_at(response, "error")))
        content += [TextContent(text=text)] if text else []
        content += said_parts(told.get("parts"), warn)
    shown = as_text(call.get("resultDisplay"))
    if not content and shown:
        content.append(TextContent(text=shown))
    return content, is_error


def call_details(
    call: JsonObject, text: str, keep: Callable[[str], str], by_subagent: str
) -> ToolDetails:
    """Files, change, plan and exit code of one call.

    Args:
        call: The call, with what the screen showed of its result.
        text: The result as the model saw it.
        keep: Keeps an earlier content of a file; returns its digest.
        by_subagent: The diff of what a subagent changed in this call.
    """
    name, shown = text_at(call, "name"), as_object(call.get("resultDisplay"))
    if name == _SHELL:
        found = _EXIT_CODE.search(text)
        is_done = call.get("status") == "success"
        exit_code = int(found[1]) if found else 0 if is_done else None
        return ToolDetails(exit_code=exit_code)
    if call.get("status") in ("error", "cancelled"):
        return ToolDetails()
    if by_subagent:
        return ToolDetails(diff=by_subagent)
    given = as_object(call.get("args"))
    path = text_at(shown, "filePath") or text_at(given, "file_path")
    if name == "write_todos":
        return ToolDetails(todos=todos_in(given.get("todos"), "description"))
    if name not in _EDITORS or not path:
        return ToolDetails(files=FileTouches(read=(path,) if path and name == "read_file" else ()))
    if "fileDiff" not in shown and text.startswith(_CREATED):
        return ToolDetails(
            diff=creation(path, text_at(given, "content")) or None,
            files=FileTouches(written=(path,)),
        )
    is_new = shown.get("isNewFile") is True
    before = shown.get("originalContent")
    diff = with_header(path, text_at(shown, "fileDiff"))
    if is_new:
        diff = creation(path, text_at(shown, "newContent"))
    return ToolDetails(
        diff=diff or None,
        files=FileTouches(written=(path,)) if is_new else FileTouches(edited=(path,)),
        digest_before=keep(before) if isinstance(before, str) and not is_new else "",
    )
