"""Markdown that arrives in pieces: what is finished is drawn once, only the tail again."""

import re
from collections import deque
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from agent_tui.safe_text import safe_text
from agent_tui.ui.styled_lines import BLANK, MAX_LINE_CHARS, Line
from agent_tui.ui.transcript.markdown import MarkdownPainter

_MAX_TAIL_CHARS = 16_000
_MAX_FENCE_CHARS = 200_000
"""An unfinished block (or code block) longer than this is no longer read as Markdown."""

_SLICE_CHARS = 4_000
"""How much of a long finished text is parsed at one go (a few milliseconds)."""

_MARKUP_ONLY = re.compile(r"[ \t]*(?:[-=*_+#>`~|:]+|\d{1,9}[.)]?)[ \t]*\Z")
"""A last line that may still become anything (a rule, a heading's underline, a list) waits."""

_UNDECIDED = "\r\u200c\u200d"
"""Whether these are shown depends on the character that follows."""


class MarkdownStream:
    """Turns a growing Markdown text into rows.

    CommonMark is read line by line and a closed top-level block is never opened again, so
    every top-level block but the last that holds a complete line is final.
    """

    def __init__(self, parser: MarkdownIt, painter: MarkdownPainter) -> None:
        self._parser = parser
        self._painter = painter
        self._finished: list[Line] = []
        self._tail_rows: list[Line] = []
        self._tail = ""
        self._arrived: list[str] = []
        self._pieces: deque[str] = deque()
        self._undecided = ""
        self._line_chars = 0
        self._overflow = 0
        self._gap_before_tail = False

    @property
    def finished_rows(self) -> int:
        """How many of the rows at the start will not change any more."""
        return len(self._finished)

    def feed(self, text: str) -> None:
        """Take in more text; nothing is drawn yet."""
        self._arrived.append(text)

    def rows(self, *, is_end: bool = False) -> list[Line]:
        """All rows for the text so far. With `is_end` no more text will come."""
        for _ in self.steps():
            pass
        last = self._pieces.popleft() if self._pieces else ""
        text = last + self._overflow_note() if is_end else last
        self._draw_tail(*self._advance(text, is_end=is_end))
        return [*self._finished, *self._tail_rows]

    def steps(self) -> Iterator[None]:
        """Work off what was fed in bounded steps, all but the last piece.

        `rows` afterwards is quick; a caller short of time may pause between two steps.
        """
        text = self._cut_long_lines("".join(self._arrived))
        self._arrived.clear()
        self._pieces.extend(_slices_of(text))
        while len(self._pieces) > 1:
            self._advance(self._pieces.popleft(), is_end=False)
            yield

    def _cut_long_lines(self, text: str) -> str:
        """`text` with the overlong part of each line left out, counted and said."""
        if not self._overflow and self._line_chars + len(text) <= MAX_LINE_CHARS:
            newline = text.rfind("\n")
            self._line_chars = len(text) - newline - 1 + (self._line_chars if newline < 0 else 0)
            return text
        parts: list[str] = []
        for number, line in enumerate(text.split("\n")):
            if number:
                parts.append(self._overflow_note() + "\n")
                self._line_chars = self._overflow = 0
            room = MAX_LINE_CHARS - self._line_chars
            parts.append(line[:room])
            self._line_chars += min(room, len(line))
            self._overflow += max(0, len(line) - room)
        return "".join(parts)

    def _overflow_note(self) -> str:
        return f" … +{self._overflow:,} characters" if self._overflow else ""

    def _advance(self, piece: str, *, is_end: bool) -> tuple[list[SyntaxTreeNode], list[str]]:
        """Draw closed blocks for good; what is left is the tail, with its source lines."""
        text = self._undecided + piece
        decided = text if is_end else text.rstrip(_UNDECIDED)
        self._undecided = text[len(decided) :]
        if decided:
            self._tail = safe_text(self._tail + decided)
        nodes = self._parse(is_end=is_end)
        source = self._tail.split("\n")
        complete_lines = len(source) - 1 + is_end
        final = [node for node in nodes if _first_line(node) < complete_lines]
        if final:
            last = _first_line(final[-1])
            kept = nodes if is_end else nodes[: len(final) - 1]
            for node in kept:
                self._finish(self._draw(node, source))
            self._cut_tail("" if is_end else "\n".join(source[last:]))
            nodes = nodes[len(kept) :]
        return nodes, source

    def _parse(self, *, is_end: bool) -> list[SyntaxTreeNode]:
        """The top-level blocks of the tail; none if it is too large to parse."""
        tail = self._tail
        if not tail.strip():
            return []
        limit = _MAX_FENCE_CHARS if tail.lstrip().startswith(("```", "~~~")) else _MAX_TAIL_CHARS
        if len(tail) > limit:
            whole, _, rest = tail.rpartition("\n")
            if whole:
                self._finish(self._painter.plain(whole), has_gap_below=False)
            self._cut_tail(rest)
            if len(rest) > limit:
                self._tail_rows = self._painter.plain(rest)
                return []
        shown = self._tail
        start = shown.rfind("\n") + 1
        if not is_end and _MARKUP_ONLY.match(shown, start):
            shown = shown[:start]
        return SyntaxTreeNode(self._parser.parse(shown)).children

    def _finish(self, rows: list[Line], *, has_gap_below: bool = True) -> None:
        if rows:
            if self._gap_before_tail:
                self._finished.append(BLANK)
            self._finished.extend(rows)
            self._gap_before_tail = has_gap_below

    def _cut_tail(self, tail: str) -> None:
        self._tail = tail
        self._tail_rows = []

    def _draw(self, node: SyntaxTreeNode, source: list[str]) -> list[Line]:
        """The rows of a block; its source if they would be empty."""
        rows = self._painter.block(node)
        if not rows and node.map:
            first, end = node.map
            rows = self._painter.plain("\n".join(source[first:end]))
        return rows

    def _draw_tail(self, nodes: list[SyntaxTreeNode], source: list[str]) -> None:
        if not nodes:
            return
        rows: list[Line] = []
        gap = self._gap_before_tail
        for node in nodes:
            drawn = self._draw(node, source)
            if gap and drawn:
                rows.append(BLANK)
            rows.extend(drawn)
            gap = True
        self._tail_rows = rows


def _slices_of(text: str) -> Iterator[str]:
    """Pieces of about `_SLICE_CHARS`, cut after a newline if there is one."""
    start = 0
    while len(text) - start > _SLICE_CHARS:
        end = text.rfind("\n", start, start + _SLICE_CHARS) + 1
        if end <= start:
            end = start + _SLICE_CHARS
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _first_line(node: SyntaxTreeNode) -> int:
    return node.map[0] if node.map else 0
