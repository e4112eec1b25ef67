"""Find the messages that are results of an action, and the action of each."""

import os
import re
from collections.abc import Sequence

from agent_tui.compaction.ledger.tool_names import PATH_ARGUMENTS, ActionKind, tool_kind
from agent_tui.compaction.tiers.model import Action, Output
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    JsonObject,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    images_in,
)

_EDITOR_COMMANDS: dict[str, ActionKind] = {
    "view": "read",
    "create": "write",
    "str_replace": "edit",
    "insert": "edit",
    "undo_edit": "edit",
}
"""One tool for several kinds (``str_replace_editor`` and its successors): ``command`` decides."""

_COMMAND_ARGUMENTS = ("command", "cmd", "code", "script")


def action_of(call: ToolCall) -> Action:
    """The action that `call` requests; ``other`` if its name is unknown."""
    command = call.arguments.get("command")
    kind = tool_kind(call.name)
    if "path" in call.arguments and isinstance(command, str):
        kind = _EDITOR_COMMANDS.get(command, kind)
    path = _first_text(call.arguments, PATH_ARGUMENTS)
    command = _first_text(call.arguments, _COMMAND_ARGUMENTS) if kind == "run" else ""
    return Action(call.name, kind, path, command, call.arguments)


def run_action(tool: str, command: str) -> Action:
    """A command that was run without a tool call."""
    return Action(tool, "run", command=command, arguments={"command": command})


def file_key(path: str) -> str:
    """`path` normalized without access to the disk; relative paths stay relative."""
    text = path.strip().removeprefix("@")
    return os.path.normpath(text) if text else ""


def _first_text(arguments: JsonObject, names: tuple[str, ...]) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
        if name == "command" and isinstance(value, list):
            return " ".join(part for part in value if isinstance(part, str))
    return ""


_OPENING = re.compile(
    r"\s*(?:<returncode>|<output>|<warning>|<function_results>|<tool_(?:result|response|output)>"
    r"|OBSERVATION:|Observation:|EXECUTION RESULT of \[)"
)
_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>|\bexit (?:code|status) (\d+)")
_FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LOOKED_AT_CHARS = 400


def observed_action(message: UserMessage, before: AssistantMessage | None) -> Action | None:
    """The action whose result `message` is; None if a user wrote it.

    It is a result if it begins like one and the reply before it requested a command in a fenced
    block instead of a call.
    """
    if before is None or before.tool_calls or not _OPENING.match(message.text[:_LOOKED_AT_CHARS]):
        return None
    blocks = _FENCED.findall(before.text)
    return run_action("bash", blocks[-1].strip()) if blocks else None


def observed_exit_code(text: str) -> int | None:
    """The exit code in a recorded result; None if there is none."""
    found = _RETURN_CODE.search(text[:_LOOKED_AT_CHARS])
    return int(found[1] or found[2]) if found else None


def read_outputs(messages: Sequence[Message]) -> list[Output | None]:
    """For each message, its output if it is the result of an action, else None.

    Args:
        messages: In the order the model sees them: results directly after their reply.
    """
    outputs: list[Output | None] = []
    waiting: list[ToolCall] = []
    reply: AssistantMessage | None = None
    for message in messages:
        before, reply = reply, None
        output: Output | None = None
        match message:
            case AssistantMessage():
                waiting, reply = list(message.tool_calls), message
            case ToolResultMessage():
                output = _of_result(message, waiting)
            case BashExecutionMessage():
                action = run_action("bash", message.command)
                output = _ran(action, message.output, message.exit_code)
            case UserMessage():
                if action := observed_action(message, before):
                    output = _ran(action, message.text, observed_exit_code(message.text))
        outputs.append(output)
    return outputs


def _of_result(result: ToolResultMessage, waiting: list[ToolCall]) -> Output:
    """The output in `result`; its call is removed from `waiting`."""
    call = next((call for call in waiting if call.id == result.tool_call_id), None)
    if call is None:
        call = ToolCall(id=result.tool_call_id, name=result.tool_name)
    else:
        waiting.remove(call)
    action = action_of(call)
    details = result.details if isinstance(result.details, dict) else {}
    files = result.tool_details.files if "files" in details else None
    exit_code, summary = details.get("exitCode"), details.get("summary")
    return Output(
        action=action,
        text=result.text,
        has_failed=result.is_error,
        exit_code=exit_code if isinstance(exit_code, int) else None,
        summary=summary if isinstance(summary, str) else "",
        is_truncated=bool(details.get("truncated") or details.get("truncation")),
        file_key=files.read[0] if files and len(files.read) == 1 else file_key(action.path),
        files=files,
        images=len(images_in(result.content)),
    )


def _ran(action: Action, text: str, exit_code: int | None) -> Output:
    return Output(action, text, has_failed=exit_code not in (None, 0), exit_code=exit_code)
