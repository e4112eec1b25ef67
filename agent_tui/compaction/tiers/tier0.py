"""Tier 0, free: what the model gains nothing from seeing again."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf

from agent_tui.compaction.tiers.model import Content, Output, Proposal, Unit
from agent_tui.compaction.tiers.replies import without_thinking
from agent_tui.messages import AssistantMessage, JsonObject, TextContent
from agent_tui.omissions import recall_mark

_POINTER_TOKENS = 40
_SMALLEST_REPEATED_TOKENS = 60
"""Below this a pointer is hardly smaller than what it stands for."""


def propose_free(units: Sequence[Unit]) -> Iterator[Proposal]:
    """Every edit of tier 0, protected messages left out.

    Display-only messages go; so does the thinking of replies, signed or not, as no provider
    wants that of a finished exchange back. A read whose lines a later successful read of the
    same file shows becomes a pointer to it, and so does an output that the same call gave word
    for word later.
    """
    pointers = pointers_to_newer(units)
    for unit in units:
        if unit.is_protected:
            continue
        if unit.is_display_only and unit.position > 0:
            yield Proposal(unit, 0, 0, _nothing, is_exact=True)
        elif isinstance(unit.message, AssistantMessage):
            if unit.thinking_tokens:
                make = partial(_thoughtless_content, unit.message)
                left = unit.written_tokens - unit.thinking_tokens
                yield Proposal(unit, 0, left, make, is_exact=True)
        elif pointer := pointers.get(unit.position):
            yield Proposal(unit, 0, _POINTER_TOKENS, partial(_same, pointer))


def _thoughtless_content(message: AssistantMessage) -> Content:
    """A reply without its thinking; calls that come last an edit need not repeat."""
    parts = without_thinking(message)
    texts = tuple(part for part in parts if isinstance(part, TextContent))
    return texts if parts[: len(texts)] == texts else parts


def _nothing() -> Content:
    return None


def _same(text: str) -> Content:
    return text


def pointers_to_newer(units: Sequence[Unit]) -> dict[int, str]:
    """What stands for outputs that a later one makes needless, by position."""
    pointers: dict[int, str] = {}
    spans_of: dict[str, SpansOfFile] = {}
    seen: dict[tuple[str, str, bool, str], str] = {}
    for unit in reversed(units):
        output = unit.output
        if output is None:
            continue
        action = output.action
        if action.kind == "read" and output.file_key:
            if output.has_failed:
                continue
            later, span = spans_of.setdefault(output.file_key, SpansOfFile()), span_of(output)
            if newer_id := later.covering(span):
                remark = f"{action.path} was read again later, in {newer_id}"
                pointers[unit.position] = f"({remark}) {recall_mark(unit.entry_id)}"
            else:
                later.add(span, unit.entry_id)
        elif unit.written_tokens >= _SMALLEST_REPEATED_TOKENS:
            newer_id = seen.setdefault(_content_key(output), unit.entry_id)
            if newer_id != unit.entry_id:
                remark = f"the same call gave the same output later, in {newer_id}"
                pointers[unit.position] = f"({remark}) {recall_mark(unit.entry_id)}"
    return pointers


def _content_key(output: Output) -> tuple[str, str, bool, str]:
    """The same for the same call with the same output."""
    asked = output.action.command or json.dumps(output.action.arguments, sort_keys=True)
    return output.action.tool, asked, output.has_failed, output.text


_NUMBERED = re.compile(r"[ \t]*(\d+)(?:\t|→|: |\| )")
_CUT_NOTE = re.compile(
    r"[\[(<][^\n\[]*(?:offset|truncated|clipped|more lines|left out|not shown)[^\n]*\s*\Z",
    re.IGNORECASE,
)
_END_CHARS = 400


@dataclass(frozen=True, slots=True)
class Span:
    """Lines `first` to `last` of a file, counted from 1; `last` is infinite for all the rest."""

    first: float
    last: float


def span_of(output: Output) -> Span:
    """The lines `output`, of a read, holds: by their numbers, else by what was asked for."""
    arguments, text = output.action.arguments, output.text
    asked_first, asked_last = _asked(arguments)
    is_cut = output.is_truncated or bool(_CUT_NOTE.search(text[-_END_CHARS:]))
    if asked_last is None and not is_cut:
        return Span(asked_first, inf)
    last = _last_number(text)
    if last is None:
        shown = text.rstrip("\n").count("\n") + 1
        last = asked_first + shown - (2 if is_cut else 1)
    return Span(asked_first, last)


@dataclass(slots=True)
class SpansOfFile:
    """The spans that later reads of one file showed; answers in logarithmic time.

    No span kept lies in another: both ends grow along the lists.
    """

    _firsts: list[float] = field(default_factory=list[float])
    _lasts: list[float] = field(default_factory=list[float])
    _ids: list[str] = field(default_factory=list[str])

    def covering(self, span: Span) -> str | None:
        """The entry that showed all of `span`, if one did."""
        at = bisect_right(self._firsts, span.first) - 1
        return self._ids[at] if at >= 0 and self._lasts[at] >= span.last else None

    def add(self, span: Span, entry_id: str) -> None:
        """A span that no known one covers; those that lie in it are forgotten."""
        start = bisect_left(self._firsts, span.first)
        end = max(bisect_right(self._lasts, span.last), start)
        for values, value in ((self._firsts, span.first), (self._lasts, span.last)):
            values[start:end] = [value]
        self._ids[start:end] = [entry_id]


def _asked(arguments: JsonObject) -> tuple[float, float | None]:
    """First and last line asked for; the last is None where none was named."""
    view_range = arguments.get("view_range")
    if isinstance(view_range, list) and len(view_range) == 2:
        start, end = view_range
        if isinstance(start, int) and isinstance(end, int):
            return max(start, 1), end if end >= start else None
    offset, limit = arguments.get("offset"), arguments.get("limit")
    first = max(offset, 1) if isinstance(offset, int) else 1
    return first, first + limit - 1 if isinstance(limit, int) else None


def _last_number(text: str) -> int | None:
    lines = text[-_END_CHARS * 10 :].split("\n")
    number = next((found[1] for line in reversed(lines) if (found := _NUMBERED.match(line))), None)
    return int(number) if number is not None else None
