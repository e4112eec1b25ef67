"""The lines of a Codex rollout in one form, and its calls and outputs in ours."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import JsonValue

from agent_tui.features.importers.diffs import creation, deletion, with_header
from agent_tui.features.importers.values import as_exit_code, image_of, todos_in
from agent_tui.messages import JsonObject, TextContent, ToolDetails, UserContent, text_in
from agent_tui.sessions.importers.builder import Warnings
from agent_tui.sessions.importers.fields import (
    as_list,
    as_object,
    as_text,
    json_lines,
    read_json,
    text_at,
)

_ENVELOPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
"""Kinds of line with their content under ``payload``."""

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
"""History items that have a separate line in files from before 2025-09."""

_SILENT = frozenset(
    {
        "dynamic_tools_updated",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "security_risk_score",
        "token_usage_record",
        "world_state",
    }
)
_SHELLS = frozenset({"shell", "container.exec", "shell_command", "exec_command", "local_shell"})
_RUN_BY = frozenset({"bash", "sh", "zsh"})
_EXIT_CODE = re.compile(
    r"(?:Chunk ID: [^\n]*\n)?(?:Wall time: [^\n]*\n)?"
    r"(?:Exit code:|Process exited with code) (\d{1,3})\n"
)
_FAILED = re.compile(
    r"\s*(?:apply_patch verification failed|exec_command failed|execution error|failed to "
    r"|(?:exec command|patch) rejected by user|aborted\b|unsupported call|command timed out|err: )"
)
_TYPED = "user_note: "
"""Before an answer that the user typed instead of choosing one."""

_PREAMBLE = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|permissions instructions|collaboration_mode"
    r"|multi_agent_mode|apps_instructions|skills_instructions)>|# AGENTS\.md instructions)"
)
_OWN = re.compile(
    r"\s*(?:# AGENTS\.md instructions(?P<folder> for [^\n]*)?"
    r"\s+<INSTRUCTIONS>(?P<text>.*?)</INSTRUCTIONS>"
    r"|<user_instructions>(?P<earlier>.*?)</user_instructions>)",
    re.DOTALL,
)
_OF_PROJECT = "\n--- project-doc ---\n"
"""What Codex puts between the user's own ``AGENTS.md`` and those of the project."""

_NOTICE = re.compile(
    r"\s*<(?:turn_aborted|user_shell_command|skill|subagent_notification|user_action)>"
)
_OF_EDITOR = re.compile(
    r"\s*# Context from my IDE setup:\n.*?\n## My request for Codex:\n", re.DOTALL
)
"""The text that an editor's extension puts before the user's words."""

_CWD = re.compile(r"<cwd>([^<\n]{1,4096})</cwd>|Current working directory: ([^\n]{1,4096})")


@dataclass(frozen=True, slots=True)
class CodexItem:
    """One line with content; `kind` is one of `_ENVELOPES`."""

    number: int
    timestamp: JsonValue
    kind: str
    payload: JsonObject


def codex_items(path: Path, warnings: Warnings) -> Iterator[CodexItem]:
    """The lines of `path`, with those of older files converted to the present form.

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
    """The line as an item; None if it has no content or is not from a rollout."""
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
    """Whether a user message is what Codex tells the model before the first one."""
    return _PREAMBLE.match(text) is not None


def own_instructions(text: str) -> str:
    """The user's own ``AGENTS.md`` in a preamble, without those of the project.

    Empty if it has none, or does not tell which it has.
    """
    found = _OWN.match(text)
    if found is None:
        return ""
    own, divider, _ = (found["text"] or found["earlier"] or "").partition(_OF_PROJECT)
    is_own = divider or (found["text"] is not None and not found["folder"])
    return own.strip() if is_own else ""


def is_notice(text: str) -> bool:
    """Whether a user message is the program's notice about what happened."""
    return _NOTICE.match(text) is not None


def split_from_editor(text: str) -> tuple[str, str]:
    """The text that an editor added to a message, and the user's words."""
    found = _OF_EDITOR.match(text)
    if found is None or not text[found.end() :].strip():
        return "", text
    return found[0].strip(), text[found.end() :].strip()


def folder_in(text: str) -> str:
    """The working folder that a preamble names; empty if it names none."""
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
    """The arguments of a call; anything but a JSON object is put under ``input``.

    Codex has had several tools for commands. Their commands become ``command``, a text for a shell,
    beginning with a change of folder if it ran outside `cwd`.
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


def patch_diff(changes: JsonObject) -> str:
    """The unified diff of all files that a patch changed; it names moved ones as they are now."""
    parts: list[str] = []
    for path, change in changes.items():
        facts = as_object(change)
        match facts.get("type"):
            case "add":
                parts.append(creation(path, text_at(facts, "content")))
            case "delete":
                parts.append(deletion(path, text_at(facts, "content")))
            case "update":
                name = text_at(facts, "move_path") or path
                parts.append(with_header(name, text_at(facts, "unified_diff")))
            case _:
                pass
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class CodexOutput:
    """The result of a call."""

    content: list[UserContent]
    is_error: bool
    details: ToolDetails


def output_of(name: str, arguments: JsonObject, written: JsonValue) -> CodexOutput:
    """The result of a call of `name`.

    Args:
        name: The tool.
        arguments: Its arguments, which contain the plan of ``update_plan``.
        written: A text, a list of parts, ``{content, success}``, or ``{output, metadata}`` as JSON
            text.
    """
    told = as_object(written)
    is_error = told.get("success") is False
    content = content_of(told.get("content") if told else written)
    exit_code: int | None = None
    text = text_in(content)
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
    words = _answers(arguments, text) if name == "request_user_input" else ""
    details = ToolDetails(exit_code=exit_code, todos=todos, user_words=words)
    return CodexOutput(content, is_error, details)


def _answers(arguments: JsonObject, text: str) -> str:
    """The questions of a call of ``request_user_input`` with the user's answers in its result."""
    given = as_object((_object_in(text) or {}).get("answers"))
    asked = map(as_object, as_list(arguments.get("questions")))
    pairs = ((text_at(one, "question"), as_object(given.get(text_at(one, "id")))) for one in asked)
    return "; ".join(
        f"{question} -> {', '.join(as_text(one).removeprefix(_TYPED) for one in answers)}"
        for question, answer in pairs
        if (answers := as_list(answer.get("answers")))
    )
