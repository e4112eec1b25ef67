"""Translates calls of models that learned the tools of other agents into calls of ours."""

import contextlib
import json
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from pydantic import JsonValue

from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.safe_paths import follow_links
from agent_tui.tool_names import find_meant_tool
from agent_tui.tools.base import UnderstoodCall

_COMMAND_EDITORS = frozenset({"str_replace_based_edit_tool", "str_replace_editor", "file_editor"})
"""Tools for all file operations: their argument ``command`` selects one."""

_COMMANDS: Final = {"view": "read", "create": "write", "str_replace": "edit"}

_PATHS = (
    "file_path filepath filePath filename file target_file absolute_path notebook_path abs_path "
    "relative_workspace_path target_directory directory dir_path dir folder search_path root"
)
_ARGUMENTS: Final[Mapping[str, str]] = {
    other: ours
    for ours, others in {
        "path": _PATHS,
        "old": "old_string old_text oldText old_str oldString search",
        "new": "new_string new_text newText new_str newString replace",
        "all": "replace_all replaceAll allow_multiple",
        "command": "cmd script code bash_command",
        "content": "text contents file_text",
        "text": "content step task title",
        "pattern": "regex query search search_pattern glob_pattern",
        "glob": "include include_pattern includePattern file_pattern file_glob",
        "ignore_case": "-i case_insensitive ignoreCase",
        "limit": "head_limit max_results max_count maxResults max_matches",
        "context": "-C context_lines",
        "multiline": "-U multi_line",
        "offset": "start_line startLine line_start start_line_one_indexed",
        "outside": "with_escalated_permissions dangerouslyDisableSandbox",
        "why": "justification",
        "background": "run_in_background is_background isBackground",
        "todos": "plan items tasks",
        "url": "uri href link address page_url source_url website",
        "patch": "input diff patch_text",
        "id": "bash_id shell_id task_id session_id job_id terminal_id",
    }.items()
    for other in others.split()
} | {"text": "content", "content": "text", "search": "old"}
"""Other agents' names for our arguments."""

_SAY_WHY = frozenset(
    {
        *("description", "explanation", "reason", "justification", "thought", "purpose"),
        *("summary", "instruction", "instructions", "is_dangerous", "security_risk"),
        *("with_escalated_permissions", "sandbox_permissions", "requires_approval"),
        *("active_form", "activeForm", "id", "priority", "-n"),
        *("prompt", "format", "max_length", "start_index", "raw"),
    }
)
"""Arguments that do not change what is done."""

_CHANGE_MUCH = frozenset({"append", "mode", "insert_line", "dry_run", "dryRun"})
"""Arguments that change what a call does: kept, so that the tool refuses them."""

_STOPPERS = frozenset({"killshell", "kill_shell", "killbash", "taskstop", "task_stop"})
"""Separate tools for what ours does with an argument."""

_ANY_HELPER = frozenset({"general-purpose", "general", "explore", "default"})
"""Other agents' kinds of helpers that correspond to a general one."""

_CTRL_C = "\x03"
_MOST_TOLD = 5
_LONGEST_S = 3_600
_FILE_TYPES: Final = {"python": "py", "typescript": "ts", "javascript": "js", "rust": "rs"}


def translate_call(
    name: str, arguments: JsonObject, tools: Sequence[ToolSpec], cwd: Path
) -> UnderstoodCall:
    """Translate a call; it stays unchanged if it means none of our tools.

    Args:
        name: The tool as the model named it.
        arguments: The arguments as the model gave them.
        tools: The tools that are offered.
        cwd: Where commands run.
    """
    own_name, given = _own_name(name, arguments, {tool.name for tool in tools})
    if own_name == "bash" and (patch := _patch_in(given, cwd)):
        own_name, given = "apply_patch", dict[str, JsonValue](patch=patch)
    tool = next((tool for tool in tools if tool.name == own_name), None)
    if tool is None:
        return UnderstoodCall(name, arguments)
    if rewrite := _REWRITES.get(own_name):
        given = rewrite(given, cwd)
    unknown: list[str] = []
    given = _rename_arguments(given, tool.parameters, unknown)
    names = list(dict.fromkeys(unknown))
    told = ", ".join(names[:_MOST_TOLD]) + (", ..." if len(names) > _MOST_TOLD else "")
    remark = f"({own_name} has no argument {told}: ignored.)" if told else ""
    return UnderstoodCall(own_name, given, remark)


def _own_name(name: str, arguments: JsonObject, offered: Collection[str]) -> tuple[str, JsonObject]:
    if name in offered:
        return name, arguments
    if name.casefold() in _COMMAND_EDITORS:
        rest = {key: value for key, value in arguments.items() if key != "command"}
        return _COMMANDS.get(str(arguments.get("command")), name), rest
    if name.casefold() in _STOPPERS:
        return find_meant_tool(name, offered), {**arguments, "stop": True}
    return find_meant_tool(name, offered), arguments


def _rename_arguments(given: JsonObject, schema: JsonObject, unknown: list[str]) -> JsonObject:
    """`given` with our argument names; unknown ones are added to `unknown` and left out."""
    known = argument_names(schema)
    properties = schema.get("properties")
    assert isinstance(properties, dict)
    renamed: JsonObject = {}
    for key, value in given.items():
        name = _ARGUMENTS.get(key, key) if key not in known else key
        if name in known and name not in renamed and (name == key or name not in given):
            renamed[name] = _rename_items(value, properties.get(name), unknown)
        elif key in _CHANGE_MUCH and value:
            renamed[key] = value
        elif key not in _SAY_WHY:
            unknown.append(key)
    return renamed


def _rename_items(value: JsonValue, schema: JsonValue, unknown: list[str]) -> JsonValue:
    items = schema.get("items") if isinstance(schema, dict) else None
    if not isinstance(items, dict) or "properties" not in items:
        return value
    if isinstance(value, str):
        with contextlib.suppress(ValueError, RecursionError):
            value = cast(JsonValue, json.loads(value, strict=False))
    if isinstance(value, dict):
        return _rename_arguments(value, items, unknown)
    if not isinstance(value, list):
        return value
    return [
        _rename_arguments(one, items, unknown) if isinstance(one, dict) else one for one in value
    ]


def argument_names(schema: JsonObject) -> set[str]:
    """The argument names of an object and of the objects in its lists."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return set()
    names = set(properties)
    for inner in properties.values():
        items = inner.get("items") if isinstance(inner, dict) else None
        if isinstance(items, dict):
            names |= argument_names(items)
    return names


_PATCH_COMMAND = re.compile(
    r"""\s* (?:cd\s+(?P<folder>[^\s;&|]+)\s*(?:&&|;)\s*)?
        (?:apply_patch|applypatch) \s* <<-?\s* (?P<quote>['"]?)(?P<end>\w+)(?P=quote) [ \t]*\n
        (?P<patch>.*?)\n (?P=end)\s*""",
    re.X | re.S,
)


def _patch_in(given: JsonObject, cwd: Path) -> str:
    """The patch in a command that only passes it to ``apply_patch``; else empty."""
    match given.get("command", given.get("cmd")):
        case [("apply_patch" | "applypatch"), str(patch)]:
            return patch
        case [("bash" | "sh"), ("-c" | "-lc"), str(command)] | str(command):
            found = _PATCH_COMMAND.fullmatch(command)
            return found["patch"] if found and _is_here(found["folder"] or ".", cwd) else ""
        case _:
            return ""


def _is_here(folder: str, cwd: Path) -> bool:
    with contextlib.suppress(OSError):
        return follow_links(str(cwd / folder)) == follow_links(str(cwd))
    return False


def _of_bash(given: JsonObject, cwd: Path) -> JsonObject:
    """Join a list of words into one text, convert milliseconds, and turn a folder into ``cd``."""
    rest = dict(given)
    rest.pop("yield_time_ms", None)  # when to return early output, not a limit
    for key in ("timeout_ms", "timeoutMs", "timeout_millis"):
        if isinstance(value := rest.pop(key, None), int | float):
            rest.setdefault("timeout", value / 1_000)
    for key in ("timeout_s", "timeout_seconds", "timeout_secs"):
        if (value := rest.pop(key, None)) is not None:
            rest.setdefault("timeout", value)
    timeout = rest.get("timeout")
    if isinstance(timeout, int | float) and timeout > _LONGEST_S:
        rest["timeout"] = timeout / 1_000
    key = next((key for key in ("command", "cmd") if key in rest), "command")
    words = rest.get(key)
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
        rest[key] = _one_command(cast(list[str], words))
    folders = [rest.pop(key, None) for key in ("workdir", "working_directory", "cwd", "dir_path")]
    folder = next((one for one in folders if isinstance(one, str) and one), "")
    if folder and isinstance(rest.get(key), str) and not _is_here(folder, cwd):
        rest[key] = f"cd {shlex.quote(folder)} || exit 1\n{rest[key]}"
    return rest


def _of_job(given: JsonObject, _cwd: Path) -> JsonObject:
    """Text for numbers, seconds for milliseconds; Control C stops the job."""
    rest = dict(given)
    typed = rest.pop("chars", None)
    if typed == _CTRL_C:
        rest["stop"] = True
    elif typed:
        rest["chars"] = typed  # jobs have no input: reported as an unknown argument
    limit = rest.pop("timeout", None)
    is_waiting = rest.pop("block", True) is not False
    for value in (rest.pop("yield_time_ms", None), limit):
        if is_waiting and isinstance(value, int | float):
            rest.setdefault("wait", min(value / 1_000, _LONGEST_S))
    for key in ("id", "bash_id", "shell_id", "task_id", "session_id", "job_id", "terminal_id"):
        if isinstance(id := rest.get(key), int) and not isinstance(id, bool):
            rest[key] = str(id)
    return rest


def _one_command(words: list[str]) -> str:
    """Turn ``["bash", "-lc", script]`` into the script; quote other words."""
    is_script = len(words) == 3 and words[0] in ("bash", "sh") and words[1] in ("-c", "-lc")
    return words[2] if is_script else shlex.join(words)


def _of_read(given: JsonObject, _cwd: Path) -> JsonObject:
    """Convert a first and a last line into a first line and a number of lines."""
    rest = dict(given)
    first = rest.get("offset")
    last: JsonValue = None
    for key in ("start_line", "startLine", "line_start", "start_line_one_indexed"):
        first = rest.pop(key, first)
    for key in ("end_line", "endLine", "line_end", "end_line_one_indexed_inclusive"):
        last = rest.pop(key, last)
    match rest.pop("view_range", None) or rest.pop("lines", None):
        case [int(begin), int(end)]:
            first, last = begin, end
        case _:
            pass
    if first == 0:
        first = 1
    if first is not None:
        rest["offset"] = first
    begin = first if isinstance(first, int) else 1
    if isinstance(last, int) and last >= begin:
        rest.setdefault("limit", last - begin + 1)
    return rest


def _of_edit(given: JsonObject, _cwd: Path) -> JsonObject:
    expected = given.get("expected_replacements")
    rest = {key: value for key, value in given.items() if key != "expected_replacements"}
    return {**rest, "all": True} if isinstance(expected, int) and expected > 1 else rest


def _of_fetch(given: JsonObject, _cwd: Path) -> JsonObject:
    """Take the one URL of a list; the model may not set the timeout."""
    rest = {key: value for key, value in given.items() if key not in ("timeout", "query")}
    match rest.pop("urls", None):
        case [str(url)] | str(url):
            rest.setdefault("url", url)
        case None:
            pass
        case several:
            rest["urls"] = several
    return rest


def _of_web_search(given: JsonObject, _cwd: Path) -> JsonObject:
    """Name allowed domains in the query, as search engines read it."""
    rest = {key: value for key, value in given.items() if not key.endswith("_domains")}
    match given:
        case {"query": str(query), "allowed_domains": [*domains]} if domains:
            rest["query"] = f"{query} {' OR '.join(f'site:{domain}' for domain in domains)}"
        case _:
            pass
    return rest


def _of_explore(given: JsonObject, _cwd: Path) -> JsonObject:
    """Use the prompt as the task and the description as its title; accept any kind of helper."""
    rest = dict(given)
    for key in ("prompt", "objective", "query", "description"):
        if isinstance(text := rest.pop(key, None), str) and text.strip():
            rest.setdefault("task", text)
    kind = rest.pop("subagent_type", None) or rest.pop("agent_name", None)
    if isinstance(kind, str) and kind.casefold() not in _ANY_HELPER:
        rest.setdefault("agent", kind)
    return {key: value for key, value in rest.items() if key not in ("model", "max_turns")}


def _of_grep(given: JsonObject, _cwd: Path) -> JsonObject:
    """Convert the output mode and the lines of context, which others give per side."""
    rest = dict(given)
    sides = [rest.pop(key, None) for key in ("-A", "-B", "before", "after", "after_context")]
    around = [side for side in sides if isinstance(side, int)]
    if around:
        rest.setdefault("context", max(around))
    if (kind := rest.pop("type", None)) and isinstance(kind, str):
        rest.setdefault("glob", f"*.{_FILE_TYPES.get(kind, kind)}")
    if isinstance(is_exact := rest.pop("case_sensitive", None), bool):
        rest.setdefault("ignore_case", not is_exact)
    mode = rest.pop("output_mode", None)
    if mode in ("files_with_matches", "count"):
        rest.setdefault("output", "files" if mode == "files_with_matches" else "counts")
    return rest


_REWRITES: Final[Mapping[str, Callable[[JsonObject, Path], JsonObject]]] = {
    "bash": _of_bash,
    "read": _of_read,
    "edit": _of_edit,
    "grep": _of_grep,
    "fetch": _of_fetch,
    "web_search": _of_web_search,
    "explore": _of_explore,
    "job": _of_job,
}
