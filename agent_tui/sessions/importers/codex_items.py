"""The lines of a Codex rollout in one shape, and its calls and outputs in our terms."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import JsonValue

from agent_tui.messages import JsonObject, TextContent, ToolDetails, UserContent
from agent_tui.sessions.importers.builder import Warnings
from agent_tui.sessions.importers.fields import (
    as_exit_code,
    as_list,
    as_object,
    as_text,
    image_of,
    json_lines,
    read_json,
    text_at,
    text_of,
    todos_in,
)

_ENVELOPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
"""Kinds of line that hold what they say under ``payload``."""

_BARE_ITEMS = frozenset(
    {
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "local_shell_call",
        "custom_tool_call",
        "custom_tool_call_output",
        "web_search_call",
    }
)
"""Items of the model's history that stand on a line of their own in files before 2025-09."""

_SILENT = frozenset(
    {"world_state", "inter_agent_communication", "inter_agent_communication_metadata"}
)
_SHELLS = frozenset({"shell", "container.exec", "shell_command", "exec_command", "local_shell"})
_RUN_BY = frozenset({"bash", "sh", "zsh"})
_EXIT_CODE = re.compile(
    r"(?:Chunk ID: [^\n]*\n)?(?:Wall time: [^\n]*\n)?"
    r"(?:Exit code:|Process exited with code) (\d{1,3})\n"
)
_FAILED = re.compile(
    r"\s*(?:apply_patch verification failed|exec_command failed|execution error|failed to "
    r"|aborted\b|unsupported call|command timed out|err: )"
)
_PREAMBLE = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|permissions instructions|collaboration_mode"
    r"|multi_agent_mode|apps_instructions|skills_instructions)>|# AGENTS\.md instructions)"
)
_NOTICE = re.compile(
    r"\s*<(?:turn_aborted|user_shell_command|skill|subagent_notification|user_action)>"
)
_OF_EDITOR = re.compile(
    r"\s*# Context from my IDE setup:\n.*?\n## My request for Codex:\n", re.DOTALL
)
"""What the extension of an editor puts before the person's words."""

_CWD = re.compile(r"<cwd>([^<\n]{1,4096})</cwd>|Current working directory: ([^\n]{1,4096})")


@dataclass(frozen=True, slots=True)
class CodexItem:
    """One line that says something; `kind` is one of `_ENVELOPES`."""

    number: int
    timestamp: JsonValue
    kind: str
    payload: JsonObject


def codex_items(path: Path, warnings: Warnings) -> Iterator[CodexItem]:
    """The lines of `path`; those of older files as if they were of today's.

    Raises:
        SessionError: The file cannot be read.
    """
    for number, value in json_lines(path, warnings):
        if not isinstance(value, dict):
            warnings.add(f"line {number}: not a JSON object; left out")
            continue
        item = codex_item(number, value)
        if item is not None:
            yield item
        elif "record_type" not in value and text_at(value, "type") not in _SILENT:
            kind = str(value.get("type"))[:40]
            warnings.add(f"line {number}: unknown kind {kind!r}; left out")


def codex_item(number: int, line: JsonObject) -> CodexItem | None:
    """The line as an item; None if it says nothing, or is of no rollout."""
    kind, payload = text_at(line, "type"), line.get("payload")
    if isinstance(payload, dict):
        known = kind in _ENVELOPES
        return CodexItem(number, line.get("timestamp"), kind, payload) if known else None
    if kind in _BARE_ITEMS and "message" not in line:
        return CodexItem(number, line.get("timestamp"), "response_item", line)
    if not kind and text_at(line, "id") and "instructions" in line:
        return CodexItem(number, line.get("timestamp"), "session_meta", line)
    return None


def is_preamble(text: str) -> bool:
    """Whether a message of the person's is what Codex told the model before the first one."""
    return _PREAMBLE.match(text) is not None


def is_notice(text: str) -> bool:
    """Whether a message of the person's is a notice of the program about what happened."""
    return _NOTICE.match(text) is not None


def split_from_editor(text: str) -> tuple[str, str]:
    """What an editor told the model with a message, and the person's words."""
    found = _OF_EDITOR.match(text)
    if found is None or not text[found.end() :].strip():
        return "", text
    return found[0].strip(), text[found.end() :].strip()


def folder_in(text: str) -> str:
    """The working folder that a preamble names; empty where it names none."""
    found = _CWD.search(text) if is_preamble(text) else None
    return (found[1] or found[2]).strip() if found else ""


def content_of(content: JsonValue) -> list[UserContent]:
    """Text and images of a message or of an output."""
    if isinstance(content, str):
        return [TextContent(text=content)] if content else []
    parts: list[UserContent] = []
    for part in map(as_object, as_list(content)):
        if url := text_at(part, "image_url"):
            parts.append(image_of(url))
        elif text := text_at(part, "text"):
            parts.append(TextContent(text=text))
    return parts


def call_arguments(name: str, written: JsonValue, cwd: str) -> JsonObject:
    """The arguments of a call; those that are no JSON object stand under ``input``.

    Codex has had several tools for commands. Theirs become ``command``, one text as a shell
    would read it, with a change of folder where the command ran in another one than `cwd`.
    """
    if isinstance(written, dict):
        arguments = written
    else:
        arguments = _object_in(as_text(written))
        if arguments is None:
            return {"input": as_text(written)}
    if name not in _SHELLS:
        return arguments
    command = _command_text(arguments.get("command", arguments.get("cmd")))
    folder = text_at(arguments, "workdir", "working_directory")
    if command and folder and folder != cwd:
        command = f"cd {shlex.quote(folder)} && {command}"
    dropped = ("command", "cmd", "workdir", "working_directory", "type")
    others: JsonObject = {key: value for key, value in arguments.items() if key not in dropped}
    return {"command": command, **others}


def _object_in(text: str) -> JsonObject | None:
    try:
        value = read_json(text.encode("utf-8", "replace") or b"{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _command_text(written: JsonValue) -> str:
    if isinstance(written, str):
        return written
    words = [word for word in as_list(written) if isinstance(word, str)]
    if len(words) == 3 and PurePosixPath(words[0]).name in _RUN_BY and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)


@dataclass(frozen=True, slots=True)
class CodexOutput:
    """What came of a call."""

    content: list[UserContent]
    is_error: bool
    details: ToolDetails


def output_of(name: str, arguments: JsonObject, written: JsonValue) -> CodexOutput:
    """The result of a call of `name`.

    Args:
        name: The tool.
        arguments: What it was called with; the plan of ``update_plan`` stands there.
        written: A text, a list of parts, ``{content, success}``, or a text that holds
            ``{output, metadata}`` as JSON.
    """
    told = as_object(written)
    is_error = told.get("success") is False
    content = content_of(told.get("content") if told else written)
    exit_code: int | None = None
    text = text_of(content)
    inner = _object_in(text) if text.startswith('{"output"') else None
    if inner is not None:
        text = text_at(inner, "output")
        content = content_of(text)
        exit_code = as_exit_code(as_object(inner.get("metadata")).get("exit_code"))
    elif found := _EXIT_CODE.match(text):
        exit_code = int(found[1])
    is_error = is_error or exit_code not in (None, 0) or bool(_FAILED.match(text))
    todos = (
        todos_in(arguments.get("plan"), "step") if name == "update_plan" and not is_error else None
    )
    return CodexOutput(content, is_error, ToolDetails(exit_code=exit_code, todos=todos))
