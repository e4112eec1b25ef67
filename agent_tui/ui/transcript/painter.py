"""Blocks as rows of the screen: the look of the chat."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from markdown_it import MarkdownIt
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from agent_tui.commands.command_output import LEAST_FOLDED, SHOWN_LINES
from agent_tui.commands.event_lines import turn_facts_line
from agent_tui.events import NoticeSubject
from agent_tui.key_actions import keys_in_force
from agent_tui.safe_text import safe_text
from agent_tui.ui.styled_lines import (
    BLANK,
    Line,
    clip,
    pad_line,
    prefix_lines,
    wrap,
    wrap_text,
)
from agent_tui.ui.theme.palette import Palette, dim_palette
from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    BashBlock,
    Block,
    DividerBlock,
    NoticeBlock,
    StartRow,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    TurnBlock,
    UserBlock,
    WelcomeBlock,
)
from agent_tui.ui.transcript.code import CodePainter
from agent_tui.ui.transcript.markdown import MAX_MEASURE, MarkdownPainter, MarkdownStream
from agent_tui.ui.transcript.thumbnail import MAX_ROWS, picture_lines
from agent_tui.ui.transcript.tool_lines import (
    SEARCHES,
    Measures,
    bash_lines,
    tool_lines,
    unfold_hint,
)

MARGIN = 3
"""Columns before the text: blank, mark, blank."""

_NOTICE_MARKS: dict[NoticeSubject, str] = {
    "": "•",
    "question": "?",
    "answer": "»",
    "job": "&",
    "plan": "◇",
    "file": "▤",
}
"""The sign before a message of the program, by its subject."""

_FOLDED_USER_LINES = 6
"""Lines at either end of a long message that show while it is folded: what was typed stands
before or behind what was pasted."""

_LEAST_DASHES = 3
"""Of a rule between its title and the hint at its end."""


class BlockPainter:
    """Draws blocks at one width in one palette."""

    def __init__(
        self, palette: Palette, parser: MarkdownIt, width: int, *, show_thinking: bool
    ) -> None:
        self.palette = palette
        self.width = width
        self.show_thinking = show_thinking
        self._parser = parser
        self._room = max(10, width - MARGIN - 1)
        self._measure = min(self._room, MAX_MEASURE)
        self._code = CodePainter(palette)
        self._markdown = MarkdownPainter(palette, self._code, self._room, MARGIN)
        self._dimmed: BlockPainter | None = None

    @property
    def dimmed(self) -> "BlockPainter":
        """The painter for messages from before a compaction."""
        thinks = self.show_thinking
        if self._dimmed is None or self._dimmed.show_thinking != thinks:
            palette = dim_palette(self.palette)
            self._dimmed = BlockPainter(palette, self._parser, self.width, show_thinking=thinks)
        return self._dimmed

    def stream(self) -> MarkdownStream:
        """A Markdown text to be fed piece by piece."""
        return MarkdownStream(self._parser, self._markdown)

    def paint(self, block: Block, *, is_expanded: bool) -> list[Line]:
        """The rows of `block`; none if there is nothing to show yet."""
        match block:
            case UserBlock():
                return self._user(block, is_expanded=is_expanded)
            case AssistantBlock():
                return self._markdown_rows(block.markdown) + self.mark_rows(block)
            case ThinkingBlock():
                return self._thinking(block, is_expanded=is_expanded)
            case ToolBlock() | BashBlock():
                return self._call(block, is_expanded=is_expanded)
            case SummaryBlock():
                return self._summary(block, is_expanded=is_expanded)
            case NoticeBlock():
                return self._notice(block)
            case TurnBlock():
                return self._turn_end(block)
            case DividerBlock():
                return self._divider(safe_text(block.title, keep_newlines=False))
            case WelcomeBlock():
                return self._welcome(block)
            case _:
                assert_never(block)

    def _call(self, block: ToolBlock | BashBlock, *, is_expanded: bool) -> list[Line]:
        if isinstance(block, BashBlock):
            return bash_lines(block, self.palette, self.width, is_expanded=is_expanded)
        measures = Measures(self.width, self._measure)
        return tool_lines(block, self.palette, self._code.inks, measures, is_expanded=is_expanded)

    def _markdown_rows(self, source: str) -> list[Line]:
        stream = self.stream()
        stream.feed(source)
        return stream.rows(is_end=True)

    def mark_rows(self, block: AssistantBlock) -> list[Line]:
        """How a reply ended that did not end well."""
        if not block.mark:
            return []
        words = {
            "interrupted": ("○", "interrupted", self.palette.muted),
            "error": ("✗", "the reply failed", self.palette.error),
            "length": ("▲", "the reply reached its length limit", self.palette.warning),
        }
        glyph, text, style = words[block.mark]
        note = safe_text(f"{text}: {block.note}" if block.note else text)
        rows = _with_sign(glyph, style, wrap_text(note, style, self._measure))
        return [BLANK, *rows] if block.markdown.strip() else rows

    def _user(self, block: UserBlock, *, is_expanded: bool) -> list[Line]:
        palette = self.palette
        lines = block.text.rstrip("\n").split("\n")
        surface = _replace_colour(palette.user, palette.muted)

        def note(text: str, *, toggles: bool = False) -> Line:
            return Line((Segment(text, surface),), is_decoration=True, toggles=toggles)

        def paint_text(part: Sequence[str]) -> list[Line]:
            return wrap_text(safe_text(clip("\n".join(part))), palette.user, self._measure)

        hidden = len(lines) - 2 * _FOLDED_USER_LINES
        if is_expanded or hidden <= 1:
            rows = paint_text(lines)
        else:
            fold = note(f"… +{hidden:,} lines{unfold_hint()}", toggles=True)
            first, last = lines[:_FOLDED_USER_LINES], lines[-_FOLDED_USER_LINES:]
            rows = [*paint_text(first), fold, *paint_text(last)]
        pictures = picture_lines(block.images, self._measure, palette)
        if block.images and not pictures:
            rows.append(note(f"+ {len(block.images)} image{'s' * (len(block.images) > 1)}"))
        rows += pictures
        rows += [note(f"+ {safe_text(file, keep_newlines=False)}") for file in block.attached]
        bar = [Segment(" "), Segment("▌", palette.user_bar), Segment(" ", palette.user)]
        return [pad_line(row, self.width - 1, palette.user) for row in prefix_lines(rows, bar)]

    def _thinking(self, block: ThinkingBlock, *, is_expanded: bool) -> list[Line]:
        text = safe_text(block.text).strip()
        if not text:
            return []
        style = self.palette.thinking
        if self.show_thinking or is_expanded:
            rows = wrap_text(text, style, self._measure)
            rows[0] = replace(rows[0], toggles=True)
        else:
            word = "Thought" if block.is_finished else "Thinking…"
            count = text.count("\n") + 1
            folded = Segment(f"{word} {count:,} line{'s' * (count > 1)}", style)
            rows = [Line((folded,), is_decoration=True, toggles=True)]
        return _with_sign("◇", style, rows)

    def _summary(self, block: SummaryBlock, *, is_expanded: bool) -> list[Line]:
        note = safe_text(block.note, keep_newlines=False)
        title, below = note or "summary", ""
        if block.tokens_before:
            before, after = short_tokens(block.tokens_before), short_tokens(block.tokens_after)
            title, below = f"context compacted ({before} -> {after} tokens)", note
            if cell_len(whole := f"{title} · {note}") <= self._measure - 4:
                title, below = whole if note else title, ""
        hint = "" if is_expanded else keys_in_force().first_key("toggle_details")
        rows = [replace(row, toggles=True) for row in self._divider(title, hint)]
        if below:
            rows += self._notice(NoticeBlock("info", below))
        if is_expanded:
            rows += [BLANK, *self._markdown_rows(block.summary)]
        return rows

    def _notice(self, block: NoticeBlock) -> list[Line]:
        palette = self.palette
        glyph, style = {
            "info": (_NOTICE_MARKS[block.about], palette.muted),
            "warning": ("▲", palette.warning),
            "error": ("✗", palette.error),
        }[block.level]
        if block.about == "answer":
            rows = self._markdown_rows(block.text) or [BLANK]
            first = prefix_lines(
                [_without_margin(rows[0])], [Segment(f" {glyph} ", palette.accent)]
            )
            return [*first, *rows[1:]]
        return _with_sign(glyph, style, wrap_text(safe_text(block.text), style, self._measure))

    def _turn_end(self, block: TurnBlock) -> list[Line]:
        """How long a turn took and what it changed, with as many names as fit on a row."""
        named = len(block.facts.changed)
        text = turn_facts_line(block.facts, named)
        while cell_len(text) > self._measure and named > 1:
            named -= 1
            text = turn_facts_line(block.facts, named)
        rows = wrap_text(safe_text(text), self.palette.muted, self._measure)
        return _with_sign("─", self.palette.faint, rows)

    def _divider(self, title: str, hint: str = "") -> list[Line]:
        """A rule with `title` in it, and `hint` near its right end if it fits."""
        palette = self.palette
        if not title:
            rule = Segment(" " + "─" * max(0, self.width - 2), palette.faint)
            return [Line((rule,), is_decoration=True)]
        label = wrap([Segment(title, palette.muted)], self._room - 4)[0]
        before = Segment(" ── ", palette.faint)
        ending = f" {hint} ─" if hint else ""
        dashes = self.width - 6 - label.cells - len(ending)
        if dashes < _LEAST_DASHES:
            ending, dashes = "", max(0, dashes + len(ending))
        after = f" {'─' * dashes}{ending}"
        segments = (before, *label.segments, Segment(after, palette.faint))
        return [Line(segments, lead=len(before.text), tail=len(after))]

    def _welcome(self, block: WelcomeBlock) -> list[Line]:
        """A name above rows in columns; in the middle of the chat until something was said."""
        palette = self.palette
        title = safe_text(block.title, keep_newlines=False)
        rows = wrap([Segment("◆ ", palette.accent), Segment(title, palette.strong)], self._room)
        groups = (("try", block.hints), ("resume", block.sessions))
        shown = [] if block.is_begun else [group for group in groups if group[1]]
        labels = [*(name for name, _ in block.facts), *(label for label, _ in shown)]
        size = max((cell_len(safe_text(name)) for name in labels), default=0) + 2
        if block.facts:
            rows.append(BLANK)
        for name, value in block.facts:
            body = wrap_text(safe_text(value), palette.text, max(10, self._room - 2 - size))
            rows += self._with_label(name, body, size)
        column = _start_column(block, self._room - 2 - size)
        for label, members in shown:
            body = [line for row in members for line in self._start_row(row, column, size)]
            rows += [BLANK, *self._with_label(label, body, size)]
        widest = max(row.cells for row in rows)
        margin = 1 if block.is_begun else max(1, (self.width - widest) // 2)
        return prefix_lines(rows, [Segment(" " * margin)])

    def _with_label(self, name: str, body: list[Line], size: int) -> list[Line]:
        """`body` beside a muted label of `size` cells."""
        text = set_cell_size(safe_text(name, keep_newlines=False), size)
        head = [Segment("  "), Segment(text, self.palette.muted)]
        return prefix_lines(body, head, [Segment(" " * (size + 2))])

    def _start_row(self, row: StartRow, column: int, size: int) -> list[Line]:
        """The item, cut to its column, and its meaning beside it."""
        palette = self.palette
        text = safe_text(row.text, keep_newlines=False)
        if cell_len(text) > column - 2:
            text = set_cell_size(text, column - 3).rstrip() + "…"
        about = [Segment(safe_text(row.about, keep_newlines=False), palette.muted)]
        if row.key:
            key = safe_text(row.key, keep_newlines=False)
            about += [Segment(" · ", palette.muted), Segment(key, palette.text)]
        room = max(10, self._room - 2 - size - column)
        head = Segment(set_cell_size(text, column), palette.accent)
        lines = prefix_lines(wrap(about, room), [head], [Segment(" " * column)])
        return [replace(line, draft=row.draft) for line in lines]


def _with_sign(sign: str, style: Style, rows: list[Line]) -> list[Line]:
    """`rows` with `sign` in the margin of the first."""
    return prefix_lines(rows, [Segment(f" {sign} ", style)], [Segment(" " * MARGIN)])


def _start_column(block: WelcomeBlock, room: int) -> int:
    """Cells for what there is to begin with; titles of sessions leave room for what is meant."""
    rows = (*block.hints, *block.sessions)
    longest = max((cell_len(row.text) for row in rows), default=0)
    abouts = max((cell_len(f"{row.about} · {row.key}") for row in rows), default=0)
    hints = max((cell_len(row.text) for row in block.hints), default=0)
    return min(max(hints, min(longest, room - abouts - 2)), room // 2) + 2


def _without_margin(row: Line) -> Line:
    """`row` without the blank segment that Markdown begins with."""
    has_margin = bool(row.segments) and row.segments[0].text == " " * MARGIN
    return replace(row, segments=row.segments[1:], lead=row.lead - MARGIN) if has_margin else row


def _replace_colour(surface: Style, ink: Style) -> Style:
    """The background of `surface` with the colour and attributes of `ink`."""
    return Style(bgcolor=surface.bgcolor) + ink


def short_tokens(tokens: int) -> str:
    """A number of tokens in at most a few characters: 950, 6.2k, 150k, 1.2M."""
    if tokens < 1_000:
        return str(tokens)
    for size, unit in ((1_000, "k"), (1_000_000, "M")):
        if tokens < 9_950 * size // 1_000:
            return f"{tokens / size:.1f}".removesuffix(".0") + unit
        if tokens < 999_500 * size // 1_000:
            return f"{tokens / size:.0f}{unit}"
    return f"{tokens / 1_000_000:.0f}M"


def estimate_rows(block: Block, width: int) -> int:
    """An estimate of the number of rows of a block, without drawing it."""
    match block:
        case UserBlock(text=text) | AssistantBlock(markdown=text):
            measure = max(10, min(width - MARGIN - 1, MAX_MEASURE))
            pictures = len(block.images) if isinstance(block, UserBlock) else 0
            return 1 + text.count("\n") + len(text) // measure + pictures * MAX_ROWS
        case WelcomeBlock():
            return 4 + len(block.facts) + len(block.hints) + len(block.sessions)
        case ToolBlock(name=name, output=output) if name in SEARCHES:
            return 1 + min(output.count("\n"), SHOWN_LINES + LEAST_FOLDED - 1)
        case ToolBlock(printed_lines=int(printed)):
            return 1 + min(printed, SHOWN_LINES + LEAST_FOLDED - 1)
        case _:
            return 1
