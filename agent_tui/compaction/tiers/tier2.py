"""Tier 2, metadata: old outputs become one line, what replies said on the way a few words."""

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from agent_tui.compaction.ledger.call_facts import (
    counted_tests,
    error_text,
    is_test,
    looks_like_error,
)
from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.shorten import one_line
from agent_tui.compaction.tiers.model import Content, Output, Proposal, Unit
from agent_tui.compaction.tiers.replies import ReplyLimits, TextLimits
from agent_tui.compaction.tiers.tier1 import propose_shorter_reply
from agent_tui.messages import AssistantMessage
from agent_tui.omissions import recall_mark
from agent_tui.tokens import TokenCounter

_LOOKED_AT_CHARS = 8_000
_MAX_NAMES = 12
_MAX_NAMES_CHARS = 200
_SUBJECT_CHARS = 80
_TELLING_LINE_CHARS = 120
_LONGEST_TELLING_LINE = 400
"""A longer one is generated or minified text that happens to hold the word."""

_MAX_ERROR_LINES = 100
_ERROR_WORDS = ("error", "exception", "fail", "fatal", "panic", "denied", "no such", "not ")
_LEADING_CD = re.compile(r"\s*cd [^&;\n]+ *(?:&&|;|\n)\s*")

_DEFINITION = re.compile(
    r"^(?:[ \t]*\d+(?:\t|→|: ?))?"
    r"(?:[ \t]*(?:(?:export|default|public|private|protected|static|abstract|final|async"
    r"|pub(?:\(\w+\))?|unsafe|override) )*"
    r"(?:class|def|func|function|fn|interface|struct|enum|trait|impl|type|module|namespace)[ \t]+"
    r"(?:\([^)\n]*\)[ \t]*)?([A-Za-z_]\w*)"
    r"|#{1,3} (\S[^\n]{0,60}))",
    re.MULTILINE,
)
_EMPTY_WORDS = re.compile(
    r"^(?:\(?no output\)?|</?(?:returncode|output|warning)>|<returncode>-?\d+</returncode>"
    r"|\[?exit code \d+\]?|[\W_]*)$"
)


def describe(output: Output, outputs: int, entry_id: str, remark: str = "") -> str:
    """What `output` was, in one line that ends with where the original is.

    Args:
        output: What is to be described.
        outputs: How many outputs the conversation has, to tell how long ago this one was.
        entry_id: Of the message that holds it.
        remark: What became of its subject since; may be empty.
    """
    subject, *parts = _failure(output) if output.has_failed else _success(output, outputs)
    parts = [subject, remark, *parts]
    return f"({'; '.join(part for part in parts if part)}) {recall_mark(entry_id)}"


def _success(output: Output, outputs: int) -> list[str]:
    match output.action.kind:
        case "read":
            digest = hashlib.blake2b(
                output.text.encode("utf-8", "surrogatepass"), digest_size=4
            ).hexdigest()
            holds = _definitions(output.text) or telling_line(output.text)
            return [f"{_subject(output)}: {_lines(output)}", f"hash {digest}", holds]
        case "write" | "edit":
            done = "written" if output.action.kind == "write" else "edited"
            ago = f"call {output.number} of {outputs}"
            todo = f"for: {one_line(output.todo, _SUBJECT_CHARS)}" if output.todo else ""
            return [f"{_subject(output)}: {output.summary or done}", ago, todo]
        case "run":
            status = "" if output.exit_code is None else f"exit {output.exit_code}"
            return [_subject(output), status or "ok", _lines(output), outcome_line(output)]
        case "other":
            found = output.summary or _lines(output)
            return [_subject(output), found, telling_line(output.text)]


def _failure(output: Output) -> list[str]:
    """The message of an error stays: a retry would run into it again."""
    status = "failed" if output.exit_code is None else f"exit {output.exit_code}"
    return [
        _subject(output),
        status,
        error_text(output.text[-_LOOKED_AT_CHARS:]) or telling_line(output.text),
    ]


def _subject(output: Output) -> str:
    """What was done to what: ``bash pytest -q`` or ``read src/a.py``."""
    action = output.action
    command = _LEADING_CD.sub("", action.command, count=1) or action.command
    target = command or action.path
    if action.kind == "other":
        target = " ".join(text for text in action.arguments.values() if isinstance(text, str))
    return f"{action.tool} {one_line(target, _SUBJECT_CHARS)}".strip()


def _lines(output: Output) -> str:
    if output.action.kind == "read" and output.summary:
        return output.summary
    lines = output.text.rstrip("\n").count("\n") + 1
    return "1 line" if lines == 1 else f"{lines:,} lines"


def _definitions(text: str) -> str:
    """The names that a file defines, and the headings of a document, as many as fit."""
    names: dict[str, None] = {}
    room = _MAX_NAMES_CHARS
    for found in _DEFINITION.finditer(text[:_LOOKED_AT_CHARS]):
        name = (found[1] or found[2]).strip()
        room -= 0 if name in names else len(name) + 2
        if room < 0 or len(names) == _MAX_NAMES:
            break
        names[name] = None
    return f"has {', '.join(names)}" if names else ""


def outcome_line(output: Output) -> str:
    """What came of it: the count of a test run, else the line that tells most."""
    text = output.text[-_LOOKED_AT_CHARS:]
    count = counted_tests(text) if is_test(output.action.command) else ""
    return one_line(count, _TELLING_LINE_CHARS) or telling_line(output.text)


def telling_line(text: str) -> str:
    """The first line that speaks of an error, else the first that says anything."""
    text = text[:_LOOKED_AT_CHARS]
    lines = (line.strip() for line in text.split("\n"))
    first = next((line for line in lines if not _EMPTY_WORDS.match(line)), "")
    lowered = text.lower()
    at = min((at for word in _ERROR_WORDS if (at := lowered.find(word)) >= 0), default=None)
    if at is not None:  # to look for words first is far faster than the pattern on every line
        rest = text[text.rfind("\n", 0, at) + 1 :].split("\n")[:_MAX_ERROR_LINES]
        short = (line for line in rest if len(line) <= _LONGEST_TELLING_LINE)
        first = next((line for line in short if looks_like_error(line)), first)
    return one_line(first, _TELLING_LINE_CHARS)


_LINE_TOKENS = 60
_REPLY = ReplyLimits(
    argument=TextLimits(max_tokens=60, end_tokens=0),
    note=TextLimits(max_tokens=120, end_tokens=40),
)


def propose_lines(
    units: Sequence[Unit],
    outputs: int,
    counter: TokenCounter,
    outdated: Collection[int] = (),
) -> Iterator[Proposal]:
    """Every edit of tier 2, protected messages and what the person wrote left out.

    Args:
        units: The messages.
        outputs: How many the whole conversation has.
        counter: Measures them.
        outdated: Positions of outputs whose file was changed since, which their lines then say.
    """
    for unit in units:
        if unit.is_protected:
            continue
        if unit.output is not None:
            remark = "edited since" if unit.position in outdated else ""
            make = partial(_line, unit, unit.output, outputs, remark)
            yield Proposal(unit, 2, _LINE_TOKENS, make)
        elif isinstance(unit.message, AssistantMessage):
            yield from propose_shorter_reply(unit, unit.message, 2, _REPLY, counter)


def _line(unit: Unit, output: Output, outputs: int, remark: str) -> Content:
    return describe(output, outputs, unit.entry_id, remark)


def outdated_positions(units: Sequence[Unit], folders: Sequence[str]) -> frozenset[int]:
    """Positions of the outputs on files that a later call wrote or edited.

    Args:
        units: The conversation, oldest first.
        folders: Names of the working folder, as for `normalise_path`.
    """
    on_files = [
        (unit.position, unit.output.action.kind, file)
        for unit in units
        if unit.output is not None and not unit.output.has_failed
        if (file := normalise_path(unit.output.file_key or unit.output.action.path, folders))
    ]
    changed = {file: at for at, kind, file in on_files if kind in ("write", "edit")}
    return frozenset(at for at, _, file in on_files if changed.get(file, -1) > at)
