"""Markdown as styled lines, one top-level block at a time, also as it arrives in pieces."""

import re
from collections import deque
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from agent_tui.safe_text import safe_text
from agent_tui.ui.styled_lines import (
    BLANK,
    MAX_LINE_CHARS,
    Line,
    Runs,
    prefix_lines,
    wrap,
    wrap_text,
)
from agent_tui.ui.theme.palette import Palette
from agent_tui.ui.transcript.code import CodePainter

MAX_MEASURE = 100
"""Columns of running text on a wide screen: longer lines are hard to read."""

_MIN_WIDTH = 8
"""Columns that nested content always gets, however deep it is."""

_BULLETS = ("•", "◦", "▪")
_GAP = 3
_MIN_COLUMN = 4


def table_lines(
    rows: Sequence[Sequence[Runs]], right: Sequence[bool], width: int, *, rule: Style
) -> list[Line]:
    """Rows of a table whose first row is its head, with a rule below it.

    Args:
        rows: Cells as styled runs, each row as long as the first.
        right: For each column, whether it is aligned to the right.
        width: Cells the table may fill.
        rule: Style of the rule.
    """
    if not rows or not rows[0]:
        return []
    cells = [[_one_line(cell) for cell in row] for row in rows]
    natural = [max(map(_cells, column)) for column in zip(*cells, strict=False)]
    widths = fit_columns(natural, width - _GAP * (len(natural) - 1))
    if sum(widths) + _GAP * (len(widths) - 1) > width:
        return _as_list(cells, width)
    lines: list[Line] = []
    for number, row in enumerate(cells):
        lines.extend(_row(row, widths, right))
        if number == 0:
            dashes = (" " * _GAP).join("─" * size for size in widths)
            lines.append(Line((Segment(dashes, rule),), is_decoration=True))
    return lines


def fit_columns(natural: Sequence[int], room: int) -> list[int]:
    """Column widths for `room` cells: narrow columns keep theirs, wide ones share the rest."""
    widths = [max(1, size) for size in natural]
    if sum(widths) <= room:
        return widths
    fitted = [0] * len(widths)
    left, columns = room, sorted(range(len(widths)), key=lambda column: widths[column])
    for done, column in enumerate(columns):
        share = left // (len(columns) - done)
        fitted[column] = max(min(_MIN_COLUMN, widths[column]), min(widths[column], share))
        left -= fitted[column]
    return fitted


def _row(cells: Sequence[Runs], widths: Sequence[int], right: Sequence[bool]) -> list[Line]:
    wrapped = [wrap(cell, size) for cell, size in zip(cells, widths, strict=False)]
    lines: list[Line] = []
    for number in range(max(map(len, wrapped))):
        segments: list[Segment] = []
        for column, parts in enumerate(wrapped):
            part = parts[number] if number < len(parts) else BLANK
            room = Segment(" " * (widths[column] - part.cells))
            is_right = column < len(right) and right[column]
            segments += [room, *part.segments] if is_right else [*part.segments, room]
            if column < len(wrapped) - 1:
                segments.append(Segment(" " * _GAP))
        lines.append(Line(tuple(segment for segment in segments if segment.text)))
    return lines


def _as_list(cells: Sequence[Sequence[Runs]], width: int) -> list[Line]:
    """Too many columns for the width: each row becomes lines of head and value."""
    head, *body = cells
    lines: list[Line] = []
    for row in body:
        if lines:
            lines.append(BLANK)
        for name, value in zip(head, row, strict=False):
            lines.extend(wrap([*name, Segment(": "), *value], width))
    return lines or wrap([run for cell in head for run in (*cell, Segment(" "))], width)


def _one_line(runs: Runs) -> Runs:
    return [Segment(run.text.replace("\n", " "), run.style) for run in runs]


def _cells(runs: Runs) -> int:
    return sum(cell_len(run.text) for run in runs)


def markdown_parser() -> MarkdownIt:
    """CommonMark with tables and strike-through; HTML is shown as it is written."""
    return MarkdownIt("commonmark", {"html": False, "maxNesting": 100}).enable(
        ["table", "strikethrough"]
    )


class MarkdownPainter:
    """Draws parsed Markdown at one width in one palette, `margin` blank columns from the left."""

    def __init__(self, palette: Palette, code: CodePainter, width: int, margin: int = 0) -> None:
        self._palette = palette
        self._code = code
        self._width = width
        self._margin = [Segment(" " * margin)] if margin else []

    def block(self, node: SyntaxTreeNode) -> list[Line]:
        """The rows of one top-level block."""
        return prefix_lines(self._block(node, self._width, 0), self._margin)

    def plain(self, text: str) -> list[Line]:
        """Rows for text too large to be read as Markdown."""
        return prefix_lines(
            wrap_text(text, self._palette.text, min(self._width, MAX_MEASURE)), self._margin
        )

    def _block(self, node: SyntaxTreeNode, width: int, depth: int) -> list[Line]:
        width = max(_MIN_WIDTH, width)
        palette = self._palette
        match node.type:
            case "heading":
                return self._heading(node, width)
            case "fence" | "code_block":
                info = node.info.split() if node.type == "fence" else []
                language = info[0] if info else ""
                code = safe_text(node.content.removesuffix("\n"))
                return self._code.block(code, safe_text(language, keep_newlines=False), width)
            case "bullet_list" | "ordered_list":
                return self._list(node, width, depth)
            case "blockquote":
                inner = self._blocks(node.children, width - 2, depth)
                return prefix_lines(inner, [Segment("▌ ", palette.quote_bar)])
            case "hr":
                return [Line((Segment("─" * width, palette.faint),), is_decoration=True)]
            case "table":
                return self._table(node, width)
            case "paragraph" | "inline":
                return self._paragraph(node, width, palette.text)
            case _:
                return wrap_text(safe_text(_content(node)), palette.text, width)

    def _blocks(self, nodes: Sequence[SyntaxTreeNode], width: int, depth: int) -> list[Line]:
        """Blocks inside a block, a blank row between two of them."""
        rows: list[Line] = []
        for node in nodes:
            if rows:
                rows.append(BLANK)
            rows.extend(self._block(node, width, depth))
        return rows

    def _paragraph(self, node: SyntaxTreeNode, width: int, style: Style) -> list[Line]:
        rows: list[Line] = []
        for line in _split_lines(self._inlines(_inline_children(node), style)):
            rows.extend(wrap(line, min(width, MAX_MEASURE)))
        return rows

    def _heading(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        palette = self._palette
        styles = {"h1": palette.heading_1, "h2": palette.heading_2}
        return self._paragraph(node, width, styles.get(node.tag, palette.heading_3))

    def _list(self, node: SyntaxTreeNode, width: int, depth: int) -> list[Line]:
        rows: list[Line] = []
        start = node.attrs.get("start", 1)
        number = start if isinstance(start, int) else 1
        marker_width = len(f"{number + len(node.children) - 1}.") + 1
        for item in node.children:
            if node.type == "ordered_list":
                marker = f"{number}.".rjust(marker_width - 1) + " "
            else:
                marker = _BULLETS[min(depth, len(_BULLETS) - 1)] + " "
            number += 1
            if rows and _is_loose(node):
                rows.append(BLANK)
            rows.extend(self._item(item, marker, width, depth))
        return rows

    def _item(self, item: SyntaxTreeNode, marker: str, width: int, depth: int) -> list[Line]:
        """One list item; ``[ ]`` and ``[x]`` at its start become its marker."""
        palette = self._palette
        rows: list[Line] = []
        for number, child in enumerate(item.children):
            is_text = child.type == "paragraph"
            if number and not (child.type.endswith("_list") or (is_text and child.hidden)):
                rows.append(BLANK)
            rows.extend(self._block(child, width - len(marker), depth + 1))
        style = palette.accent
        rows = rows or [BLANK]
        task = rows[0].text[:4].lower()
        if task in ("[ ] ", "[x] "):
            style = palette.success if task == "[x] " else palette.muted
            marker = ("☑ " if task == "[x] " else "☐ ").rjust(len(marker))
            rows[0] = _without_start(rows[0], 4)
        return prefix_lines(
            rows, [Segment(marker, style)], [Segment(" " * len(marker), palette.text)]
        )

    def _table(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        palette = self._palette
        table: list[list[list[Segment]]] = []
        aligned: list[str] = []
        for section in node.children:
            for row in section.children:
                is_head = section.type == "thead"
                style = palette.strong if is_head else palette.text
                table.append(
                    [self._inlines(_inline_children(cell), style) for cell in row.children]
                )
                if is_head:
                    aligned = [str(cell.attrs.get("style", "")) for cell in row.children]
        right = [style.endswith("right") for style in aligned]
        return table_lines(table, right, width, rule=palette.faint)

    def _inlines(self, nodes: Sequence[SyntaxTreeNode], style: Style) -> list[Segment]:
        """Runs of inline Markdown; a line break is a separate run with a newline."""
        runs: list[Segment] = []
        for node in nodes:
            runs.extend(self._inline(node, style))
        return runs

    def _inline(self, node: SyntaxTreeNode, style: Style) -> list[Segment]:
        palette = self._palette
        match node.type:
            case "softbreak" | "hardbreak":
                return [Segment("\n", style)]
            case "code_inline":
                text = safe_text(node.content, keep_newlines=False)
                return [Segment(text, style + palette.inline_code)]
            case "strong":
                return self._inlines(node.children, style + _attributes(palette.strong))
            case "em":
                return self._inlines(node.children, style + _attributes(palette.emphasis))
            case "s":
                return self._inlines(node.children, style + palette.strike)
            case "link":
                return self._link(node, style)
            case "image":
                source = safe_text(str(node.attrs.get("src", "")), keep_newlines=False)
                return [Segment(f"{safe_text(node.content)} ({source})", style + palette.link)]
            case _:
                # Entities were decoded by the parser, so its text is foreign once more.
                return [Segment(safe_text(node.content, keep_newlines=False), style)]

    def _link(self, node: SyntaxTreeNode, style: Style) -> list[Segment]:
        """The label, and the address if the label does not show it."""
        palette = self._palette
        label = self._inlines(node.children, style + palette.link)
        address = safe_text(str(node.attrs.get("href", "")), keep_newlines=False)
        shown = "".join(run.text for run in label).removeprefix("mailto:").rstrip("/")
        if not address or shown in (address.rstrip("/"), address.removeprefix("mailto:")):
            return label
        return [*label, Segment(f" ({address})", palette.muted)]


def _content(node: SyntaxTreeNode) -> str:
    """The source of a node without its own drawing."""
    return "" if node.is_nested or node.is_root else node.content


def _attributes(style: Style) -> Style:
    """Bold, italic and the like of `style`, without its colours."""
    return Style(bold=style.bold, italic=style.italic, strike=style.strike)


def _inline_children(node: SyntaxTreeNode) -> Sequence[SyntaxTreeNode]:
    """The inline nodes of a paragraph, heading or table cell."""
    if node.type == "inline":
        return node.children
    return [grandchild for child in node.children for grandchild in child.children]


def _is_loose(node: SyntaxTreeNode) -> bool:
    """Whether the items of a list were written with blank lines between them."""
    return any(
        child.type == "paragraph" and not child.hidden
        for item in node.children
        for child in item.children
    )


def _split_lines(runs: Runs) -> list[list[Segment]]:
    """Runs cut at their newlines."""
    lines: list[list[Segment]] = [[]]
    for run in runs:
        for number, piece in enumerate(run.text.split("\n")):
            if number:
                lines.append([])
            if piece:
                lines[-1].append(Segment(piece, run.style))
    return lines


def _without_start(line: Line, count: int) -> Line:
    """`line` without its first `count` characters of text (it has no decoration yet)."""
    segments: list[Segment] = []
    for text, style, _ in line.segments:
        cut = min(count, len(text))
        count -= cut
        if text[cut:]:
            segments.append(Segment(text[cut:], style))
    return Line(tuple(segments), joint=line.joint)


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
