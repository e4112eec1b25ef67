"""Walks through a reply: what in it may be a call, and what is only shown."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from agent_tui.features.weak_models.forms import (
    CALL_OBJECT,
    CALL_PLACE,
    END_OF_TURN,
    TAG_OPENER,
    CutOffError,
    UnreadableError,
    Written,
    looks_like_call,
    read_only_calls,
    read_plain,
    read_tagged,
    skip_separator,
    skip_space,
)
from agent_tui.features.weak_models.offered import OfferedTools, WrittenCall


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


QUOTING_ELEMENTS: Final = _words(
    "code command-output content context diff directory document documents example examples file "
    "file-content file-contents file_content file_contents files folder function_result "
    "function_results instructions observation output pre quote result results skill snippet "
    "source summary system-reminder system_reminder text tool_output tool_response tool_responses "
    "tool_result tool_results user"
)
"""Elements that hold quoted text, even if the model forgets to close them."""

THINKING_ELEMENTS: Final = frozenset({"think", "thinking", "reasoning", "thought", "thoughts"})

CALL_FENCES: Final = _words(
    "json jsonc tool_call tool_calls tool_code tool_use tool function_call xml text plaintext"
) | {""}
"""Labels after the marks of a fence whose content is a call."""

MAX_WORDS_CHARS = 240
"""How many characters before a call are examined as its introduction."""
_MAX_PROSE_AFTER_CHARS = 280

_MIN_VALUE_CHARS = 3

_QUOTED_LINE = re.compile(
    r"""
    \s* (?: \d+ \s* (?:\t|\||:|→|-\s)         # numbered, as tools print files
          | [+>|#;%"'“‘«] | \*(?!\*) | -[ ]?            # diffs, block quotes, comments, quotes
          | // | /\* | <!--
        )
  | \t | [ ]{4}                               # indented code
  | \S+:\d+:                                  # grep
    """,
    re.X,
)
_OPEN_QUOTE = re.compile(r"""["'“‘«=(]\s*\Z""")
_SENTENCE_END = re.compile(r"""[.!?。！？]["')]?(?:\s+|\Z)""")
_LABEL = re.compile(r"\s*(\*\*|__)[^\n]+\1\s*")
_POINTING = re.compile(
    r"""
    [:：,\w`] \Z                               # a colon, or a sentence that goes on
  | (?<![^\W\d_]) [^\W\d_]\.[^\W\d_]\. \Z      # an abbreviation of two letters
    """,
    re.X,
)


def is_quoted_line(before: str) -> bool:
    """Whether a line that begins with `before`, the text before a call, only shows the call."""
    return _QUOTED_LINE.match(before) is not None or _OPEN_QUOTE.search(before) is not None


def points_at_something_else(words: str, calls: Iterable[WrittenCall]) -> bool:
    """Whether `words`, the text before `calls`, introduces them as something merely shown.

    Only for calls without tags: between tags that models are trained to write, everything that is
    not a copy is a call, and copies are found by their origin.

    A finished sentence is independent of the call. A sentence that ends in a colon or is
    unfinished, or a heading, introduces what follows; a model that announces a call names the tool
    or what it works on. A bold label on the call's own line is not a sentence.
    """
    line = words.rstrip()[-MAX_WORDS_CHARS:].rpartition("\n")[2]
    if "\n" not in words[len(words.rstrip()) :] and _LABEL.fullmatch(line):
        return False
    is_heading = line.lstrip().startswith("#")
    said = line.strip().strip("*_")
    if not is_heading and _POINTING.search(said) is None:
        return False
    return not _speaks_of(line, calls)


def is_only_joining(words: str) -> bool:
    """Whether `words` between two calls only join them: ``and``."""
    return words.strip().isalpha()


def explains_call(prose: str, calls: Iterable[WrittenCall]) -> bool:
    """Whether `prose` after calls without tags is about something else than what they do.

    One remark may be about anything; longer prose must name the tool, or what it works on.
    """
    if len(prose) > _MAX_PROSE_AFTER_CHARS:
        return True
    return len(_SENTENCE_END.findall(prose)) > 1 and not _speaks_of(prose, calls)


def _speaks_of(prose: str, calls: Iterable[WrittenCall]) -> bool:
    """Whether `prose` names a tool of `calls`, or a text among their arguments."""
    folded = prose.casefold()
    words = frozenset(re.findall(r"\w+", folded))
    return any(
        call.name.casefold() in words
        or any(text.casefold() in folded for text in _texts(call.arguments))
        for call in calls
    )


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str) and len(value.strip()) >= _MIN_VALUE_CHARS:
        yield value.strip()
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


_EVENT = re.compile(
    rf"""
    (?P<fence>^[ ]{{0,3}}(?P<marks>`{{3,}}|~{{3,}})[ ]*(?P<info>[^`\n]*)$)
  | (?P<ticks>`+)
  | (?P<tag>{TAG_OPENER})
  | </(?P<closing>{"|".join(sorted(THINKING_ELEMENTS))})>
  | <(?P<element>[a-z][\w.:-]*+)(?:\s[^<>]*+)?(?<!/)>
  | (?P<json>{CALL_PLACE}(?:\{{(?=\s*")|\[(?=\s*["{{\[])|(?={CALL_OBJECT})))
    """,
    re.X | re.I | re.M,
)
_CLOSING_TAG = re.compile(r"</([a-z][\w.:-]*+)", re.I)
_REST_OF_LINE = re.compile(r"[^\n]*")
_MAX_INLINE_TICKS = 8
_LINE_END_CHARS = 60


@dataclass(frozen=True, slots=True)
class Candidate:
    """Text that reads like calls of offered tools, in a place where a call may be."""

    start: int
    end: int
    calls: tuple[WrittenCall, ...]
    is_tagged: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """The candidates of a text, and what was meant as one.

    Attributes:
        candidates: In text order.
        unclear: The first candidate that the text before it introduces as something else.
        refused_at: The first place where something begins like a call and is not only shown, but is
            unreadable or names a tool that was not offered.
    """

    candidates: tuple[Candidate, ...]
    unclear: Candidate | None = None
    refused_at: int | None = None


def scan(text: str, tools: OfferedTools) -> Scan:
    """Walk through a text once, from left to right.

    No call may begin in a fence with other content, in inline code, in block quotes, indented or
    numbered lines, diffs and comments, in elements that quote (``<file>``, or any other that is
    closed), in thinking, in the arguments of another call, or after words that introduce something
    else. After an unreadable call, nothing counts: it may be inside a text that was meant as an
    argument.
    """
    return _Scanner(text, tools).run()


class _Scanner:
    """The state of one walk: its position, and what was found."""

    def __init__(self, text: str, tools: OfferedTools) -> None:
        self._text = text
        self._tools = tools
        self._found: list[Candidate] = []
        self._at = 0
        self._line_start = 0
        self._last_end = 0
        self._last_was_shown = False
        self._last_closers: dict[str, int] | None = None
        self._unclear: Candidate | None = None
        self._refused_at: int | None = None

    def run(self) -> Scan:
        try:
            while event := _EVENT.search(self._text, self._at):
                self._begin_line(event.start())
                self._handle(event)
        except UnreadableError:
            self._refuse(Candidate(self._at, len(self._text), (), is_tagged=True))
        return Scan(tuple(self._found), self._unclear, self._refused_at)

    def _handle(self, event: re.Match[str]) -> None:
        kind = event.lastgroup
        self._at = event.start()
        if kind == "fence":
            self._fence(event)
        elif kind == "ticks":
            self._inline_code(event)
        elif kind == "closing":
            self._found.clear()  # all before it was thinking, though no tag had opened it
            self._unclear = self._refused_at = None
            self._at = event.end()
        elif kind == "element":
            self._element(event)
        elif kind == "tag":
            self._try(event.start(), read_tagged, is_tagged=True, skip_to=event.end())
        else:
            begin = event.start() + len(event[0]) - len(event[0].lstrip(" "))
            self._try(begin, self._read_line_call, is_tagged=False, skip_to=event.end())

    def _begin_line(self, at: int) -> None:
        newline = self._text.rfind("\n", self._line_start, at)
        if newline >= 0:
            self._line_start = newline + 1

    def _try(
        self,
        begin: int,
        read: Callable[[str, int, OfferedTools], Written | None],
        *,
        is_tagged: bool,
        skip_to: int,
    ) -> None:
        written = read(self._text, begin, self._tools)
        if written is None:
            self._at = skip_to
            return
        self._at = max(written.end, begin + 1)
        if written.calls:
            self._weigh(Candidate(begin, written.end, written.calls, is_tagged))
        elif is_tagged:
            self._refuse(Candidate(begin, written.end, (), is_tagged))

    def _refuse(self, meant: Candidate) -> None:
        if self._refused_at is not None or self._is_quoted(meant):
            return
        if not (self._follows_another(meant) and self._last_was_shown):
            self._refused_at = meant.start

    def _weigh(self, candidate: Candidate) -> None:
        """Keep `candidate` unless it is only shown."""
        is_shown = self._is_quoted(candidate)
        if not is_shown and self._follows_another(candidate):
            is_shown = self._last_was_shown
        elif not is_shown and not candidate.is_tagged:
            is_shown = points_at_something_else(self._words_before(candidate), candidate.calls)
            if is_shown and self._unclear is None:
                self._unclear = candidate
        self._last_end = candidate.end
        self._last_was_shown = is_shown
        if not is_shown:
            self._found.append(candidate)
            self._line_start = candidate.end

    def _words_before(self, candidate: Candidate) -> str:
        begin = max(self._last_end, candidate.start - 2 * MAX_WORDS_CHARS)
        return self._text[begin : candidate.start]

    def _follows_another(self, candidate: Candidate) -> bool:
        """Whether it directly follows the previous call, or begins the reply."""
        before = self._words_before(candidate)
        return not before.strip() or (self._last_end > 0 and is_only_joining(before))

    def _is_quoted(self, candidate: Candidate) -> bool:
        head = self._text[self._line_start : candidate.start]
        if len(head) > 2 * _LINE_END_CHARS:
            head = head[:_LINE_END_CHARS] + head[-_LINE_END_CHARS:]
        return is_quoted_line(head)

    def _read_line_call(self, text: str, at: int, tools: OfferedTools) -> Written | None:
        """Calls in JSON with nothing else on their last line.

        Raises:
            UnreadableError: See `read_json`.
        """
        parts: list[Written] = []
        while (written := read_plain(text, at, tools)) is not None:
            parts.append(written)
            at = skip_separator(text, written.end)
            if "\n\n" in text[written.end : at]:
                break
        if not parts:
            return None
        end = parts[-1].end
        rest = _REST_OF_LINE.match(text, end)
        is_alone = rest is None or not rest[0].strip(" \t\r,;")
        if not is_alone or not all(part.calls for part in parts):
            return Written((), end)
        return Written(tuple(call for part in parts for call in part.calls), end)

    def _fence(self, event: re.Match[str]) -> None:
        marks = event["marks"]
        closing = re.compile(
            rf"^[ ]{{0,3}}{re.escape(marks[0])}{{{len(marks)},}}[ \t]*{END_OF_TURN}?$",
            re.M | re.X,
        )
        begin = min(event.end() + 1, len(self._text))
        end = closing.search(self._text, begin)
        content = self._text[begin : end.start() if end else len(self._text)]
        info = event["info"].strip().casefold()
        after = end.end() if end else len(self._text)
        written = Written((), 0)
        if info in CALL_FENCES:
            try:
                written = read_only_calls(content, self._tools)
            except UnreadableError as error:
                is_open = end is None and isinstance(error, CutOffError)
                if is_open or looks_like_call(content, skip_space(content, 0)):
                    raise
        self._at = after
        if written.calls:
            self._weigh(Candidate(event.start(), after, written.calls, is_tagged=False))

    def _inline_code(self, event: re.Match[str]) -> None:
        """Skip inline code; backticks that are never closed are ordinary characters."""
        count = len(event["ticks"])
        self._at = event.end()
        if count > _MAX_INLINE_TICKS:
            return
        closing = re.compile(
            rf"(?P<end>(?<!`)`{{{count}}}(?!`))|\n[ \t]*\n|\n[ ]{{0,3}}(?:```|~~~)"
        )
        found = closing.search(self._text, event.end())
        if found and found["end"]:
            self._at = found.end()

    def _element(self, event: re.Match[str]) -> None:
        name = event["element"].casefold()
        if name in THINKING_ELEMENTS:
            closing = re.compile(rf"</{re.escape(name)}>", re.I)
            end = closing.search(self._text, event.end())
            self._at = end.end() if end else len(self._text)
            return
        # The last closing tag: quoted content may contain one itself.
        last = self._closers().get(name, -1)
        if last > event.end():
            self._at = last
        elif name in QUOTING_ELEMENTS:
            self._at = len(self._text)
        else:
            self._at = event.end()

    def _closers(self) -> dict[str, int]:
        if self._last_closers is None:
            found = _CLOSING_TAG.finditer(self._text)
            self._last_closers = {match[1].casefold(): match.end() for match in found}
        return self._last_closers
