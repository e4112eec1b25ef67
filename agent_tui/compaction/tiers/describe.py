"""Old outputs in one line: what was done to what, and the result."""

import re
from collections.abc import Sequence

from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.sections.commands import without_folder
from agent_tui.compaction.tiers.json_reply import read_fields
from agent_tui.compaction.tiers.model import Unit
from agent_tui.messages import ToolCall, ToolResultMessage
from agent_tui.omissions import one_line, recall_mark
from agent_tui.sessions.actions import Action, Output
from agent_tui.sessions.outputs import (
    action_of,
    error_text,
    is_test,
    looks_like_error,
    results_of_tests,
)

_LOOKED_AT_CHARS = 8_000
_SUBJECT_CHARS = 80
_SAID_CHARS = 1_000
_TELLING_LINE_CHARS = 120
_LONGEST_TELLING_LINE = 400
"""A longer line is generated or minified text that happens to contain the word."""

_MAX_ERROR_LINES = 100
_ERROR_WORDS = ("error", "exception", "fail", "fatal", "panic", "denied", "no such", "not ")
_EMPTY_WORDS = re.compile(
    r"^(?:\(?no output\)?|</?(?:returncode|output|warning)>|<returncode>-?\d+</returncode>"
    r"|\[?exit code \d+\]?|[\W_]*)$"
)


def describe(output: Output, entry_id: str, remark: str = "") -> str:
    """Describe `output` in one line that ends with a reference to the original.

    An error's message stays: a retry would hit it again. So does what the user said about it.

    Args:
        output: The output to describe.
        entry_id: The entry with the output.
        remark: A later change of its subject; may be empty.
    """
    status = output.failure
    if not output.ending and output.exit_code is not None:
        status = f"exit {output.exit_code}"
    if output.said:
        came = [one_line("; ".join(output.said), _SAID_CHARS)]
    elif output.has_failed:
        came = [error_text(output.text[-_LOOKED_AT_CHARS:]) or telling_line(output.text)]
    else:
        lines = output.text.rstrip("\n").count("\n") + 1
        came = [output.summary or line_count(lines), outcome_line(output)]
    parts = (action_label(output.action), remark, status, *came)
    return f"({'; '.join(part for part in parts if part)}) {recall_mark(entry_id)}"


def action_label(action: Action, max_chars: int = _SUBJECT_CHARS) -> str:
    """What was done to what, in one line: ``$ pytest -q`` or ``read src/a.py``."""
    if action.command:
        return f"$ {one_line(without_folder(action.command) or action.command, max_chars)}"
    target = action.path
    if action.kind == "other" or not target:
        target = " ".join(text for text in action.arguments.values() if isinstance(text, str))
    return f"{action.tool} {one_line(target, max_chars)}".strip()


def call_label(result: ToolResultMessage, call: ToolCall | None) -> str:
    """The call of `result` in one line; `call` is None if it was lost."""
    return action_label(action_of(call or ToolCall(id="", name=result.tool_name)))


def line_count(count: int) -> str:
    """The number of lines in words."""
    return "1 line" if count == 1 else f"{count:,} lines"


def outcome_line(output: Output) -> str:
    """The result of an action: a test run's counts, else the most telling line."""
    text = output.text[-_LOOKED_AT_CHARS:]
    count = results_of_tests(output.action.command, text) if is_test(output.action.command) else ""
    return one_line(count, _TELLING_LINE_CHARS) or telling_line(output.text)


def telling_line(text: str) -> str:
    """The first line that mentions an error, else the first that is not empty.

    A reply in JSON that fits on the line is all of it.
    """
    fields = read_fields(text)
    if fields and len(whole := " ".join(text.split())) <= _TELLING_LINE_CHARS:
        return whole
    text = (fields or text)[:_LOOKED_AT_CHARS]
    lines = (line.strip() for line in text.split("\n"))
    first = next((line for line in lines if not _EMPTY_WORDS.match(line)), "")
    lowered = text.lower()
    at = min((at for word in _ERROR_WORDS if (at := lowered.find(word)) >= 0), default=None)
    if at is not None:  # searching for words first is far faster than the pattern on every line
        rest = text[text.rfind("\n", 0, at) + 1 :].split("\n")[:_MAX_ERROR_LINES]
        short = (line for line in rest if len(line) <= _LONGEST_TELLING_LINE)
        first = next((line for line in short if looks_like_error(line)), first)
    return one_line(first, _TELLING_LINE_CHARS)


def outdated_positions(units: Sequence[Unit], folders: Sequence[str]) -> frozenset[int]:
    """Positions of outputs about files that a later call wrote or edited.

    Args:
        units: The conversation, oldest first.
        folders: Paths of the working folder, as for `normalise_path`.
    """
    on_files = [
        (unit.position, unit.output.action.kind, file)
        for unit in units
        if unit.output is not None and not unit.output.has_failed
        if (file := normalise_path(unit.output.file_key or unit.output.action.path, folders))
    ]
    changed = {file: at for at, kind, file in on_files if kind in ("write", "edit")}
    return frozenset(at for at, _, file in on_files if changed.get(file, -1) > at)
