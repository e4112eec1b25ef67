"""What a tool call does, by the names that coding agents give their tools."""

import os

from agent_tui.compaction.ledger.tool_names import (
    EDITORS,
    PATCHERS,
    PATH_ARGUMENTS,
    READERS,
    SHELLS,
    WRITERS,
)
from agent_tui.compaction.tiers.model import Action, ActionKind
from agent_tui.messages import JsonObject, ToolCall

_EDITOR_COMMANDS: dict[str, ActionKind] = {
    "view": "read",
    "create": "write",
    "str_replace": "edit",
    "insert": "edit",
    "undo_edit": "edit",
}
"""One tool for all of it (``str_replace_editor`` and its successors): ``command`` tells."""

_COMMAND_ARGUMENTS = ("command", "cmd", "code", "script")


def action_of(call: ToolCall) -> Action:
    """The action `call` asks for; ``other`` where its name says nothing."""
    kind = _kind(call.name.lower(), call.arguments)
    path = _first_text(call.arguments, PATH_ARGUMENTS)
    command = _first_text(call.arguments, _COMMAND_ARGUMENTS) if kind == "run" else ""
    return Action(call.name, kind, path, command, call.arguments)


def run_action(tool: str, command: str) -> Action:
    """A command that was run without a tool call."""
    return Action(tool, "run", command=command, arguments={"command": command})


def file_key(path: str) -> str:
    """`path` in one form, without a look at the disk; relative paths stay relative."""
    text = path.strip().removeprefix("@")
    return os.path.normpath(text) if text else ""


def _kind(name: str, arguments: JsonObject) -> ActionKind:
    command = arguments.get("command")
    if "path" in arguments and isinstance(command, str) and command in _EDITOR_COMMANDS:
        return _EDITOR_COMMANDS[command]
    if name in READERS:
        return "read"
    if name in WRITERS:
        return "write"
    if name in EDITORS | PATCHERS:
        return "edit"
    return "run" if name in SHELLS else "other"


def _first_text(arguments: JsonObject, names: tuple[str, ...]) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
        if name == "command" and isinstance(value, list):
            return " ".join(part for part in value if isinstance(part, str))
    return ""
