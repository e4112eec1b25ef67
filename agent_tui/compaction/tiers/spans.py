"""Which lines of a file a result showed."""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from math import inf

from agent_tui.compaction.tiers.model import Output
from agent_tui.messages import JsonObject

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
