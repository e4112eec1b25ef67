"""What calls of opencode's tools changed, in our form."""

from collections.abc import Callable
from typing import TypeAlias

from agent_tui.features.importers.diffs import creation, with_header
from agent_tui.features.importers.values import as_exit_code, todos_in
from agent_tui.messages import FileTouches, JsonObject, ToolDetails
from agent_tui.sessions.importers.fields import as_list, as_object, text_at

KeepContent: TypeAlias = Callable[[str], str]
"""Keeps an earlier content of a file; returns its digest."""


def call_details(part: JsonObject, keep: KeepContent, by_subagent: str = "") -> ToolDetails:
    """Files, change, plan and exit code of one call.

    Args:
        part: The part with the call and its state.
        keep: Keeps an earlier content of a file; returns its digest.
        by_subagent: The diff of what a subagent changed in this call.
    """
    state = as_object(part.get("state"))
    tool, metadata = text_at(part, "tool"), as_object(state.get("metadata"))
    if tool in ("bash", "shell"):
        return ToolDetails(exit_code=as_exit_code(metadata.get("exit")))
    if state.get("status") != "completed":
        return ToolDetails()
    path = text_at(as_object(state.get("input")), "filePath", "path")
    if tool == "todowrite":
        return ToolDetails(todos=todos_in(metadata.get("todos"), "content"))
    if tool == "read":
        return ToolDetails(files=FileTouches(read=(path,) if path else ()))
    written = (path,) if path and tool == "write" else ()
    edited = (path,) if path and tool in ("edit", "multiedit") else ()
    before = as_object(metadata.get("filediff")).get("before")
    return ToolDetails(
        diff=by_subagent or changes_of(part) or None,
        files=FileTouches(written=written, edited=edited),
        digest_before=keep(before) if isinstance(before, str) and before else "",
    )


def changes_of(part: JsonObject) -> str:
    """The unified diff of all files that a call changed; empty for none."""
    state = as_object(part.get("state"))
    metadata, given = as_object(state.get("metadata")), as_object(state.get("input"))
    if state.get("status") != "completed":
        return ""
    path = text_at(given, "filePath", "path")
    if text_at(part, "tool") == "write" and metadata.get("exists") is False:
        return creation(path, text_at(given, "content"))
    files = [as_object(file) for file in as_list(metadata.get("files"))]
    patches = [
        with_header(text_at(file, "movePath", "filePath"), text_at(file, "patch", "diff"))
        for file in files
    ]
    if any(patches):
        return "".join(patches)
    change = as_object(metadata.get("filediff"))
    name = text_at(change, "file") or text_at(metadata, "filepath") or path
    return with_header(name, text_at(change, "patch") or text_at(metadata, "diff"))
