"""Our calls and modes in the terms that hooks of all agents are written in."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from agent_tui.config import PermissionMode
from agent_tui.messages import JsonObject, ToolCall
from agent_tui.tool_names import shared_name
from agent_tui.tools.base import ToolOutput

MODES: Final[dict[PermissionMode, str]] = {
    "ask": "default",
    "accept-edits": "acceptEdits",
    "plan": "plan",
    "full": "bypassPermissions",
}
_REPLACEMENT: Final = {"old": "old_string", "new": "new_string", "all": "replace_all"}


def call_facts(call: ToolCall, paths: Sequence[Path]) -> JsonObject:
    """What a hook is told of a call: its name, its arguments, and all files it is about.

    Args:
        call: In our terms.
        paths: Absolute.
    """
    return {
        "tool_name": shared_name(call.name),
        "tool_use_id": call.id,
        "tool_input": shared_input(call, paths),
        "paths": [str(path) for path in paths],
    }


def shared_input(call: ToolCall, paths: Sequence[Path]) -> JsonObject:
    """The arguments of `call` by their shared names; `understood` reads them back."""
    given = dict(call.arguments)
    if call.name in ("read", "edit", "write") and "path" in given:
        path = given.pop("path")
        given = {"file_path": str(paths[0]) if len(paths) == 1 else path, **given}
    match given.get("edits"):
        case [dict(single)] if call.name == "edit":
            del given["edits"]
            given |= _renamed(single)
        case list(edits) if call.name == "edit":
            given["edits"] = [_renamed(one) if isinstance(one, dict) else one for one in edits]
        case _:
            given = _renamed(given) if call.name == "edit" else given
    return given


def result_facts(output: ToolOutput) -> JsonObject:
    """What a hook is told of a result."""
    facts: JsonObject = {"content": output.for_model, "is_error": output.is_error}
    if (exit_code := output.for_person.exit_code) is not None:
        facts |= {"stdout": output.for_model, "stderr": "", "exit_code": exit_code}
    return facts


def _renamed(given: JsonObject) -> JsonObject:
    renamed: dict[str, JsonValue] = {
        _REPLACEMENT.get(key, key): value for key, value in given.items()
    }
    return renamed
