"""Tool calls and shell commands as rows: one line each, with what matters below."""

import re
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from agent_tui.commands.command_output import (
    LEAST_FOLDED,
    SHOWN_LINES,
    OutputExcerpt,
    beginning,
    excerpt,
)
from agent_tui.commands.core.short_words import count_text, short_time
from agent_tui.key_actions import keys_in_force
from agent_tui.messages import Todo
from agent_tui.safe_text import safe_output, safe_text
from agent_tui.ui.diff_view import Inks, diff_lines, diff_stat, fold_context, parse_diff
from agent_tui.ui.styled_lines import (
    MAX_LINE_CHARS,
    Line,
    clip,
    prefix_lines,
    wrap,
    wrap_text,
)
from agent_tui.ui.theme.palette import Palette
from agent_tui.ui.transcript.blocks import BashBlock, ToolBlock, ToolStatus
from agent_tui.ui.transcript.thumbnail import picture_lines

_LIVE_HELPER_LINES = 1
"""Of a helper what it does now: several may run."""

_FOLDED_BASH_LINES = 10
"""Of a command that the user ran to see what it prints."""

_FOLDED_STEPS = 10
_FOLDED_DIFF_LINES = 12
_UNFOLDED_LINES = 2_000
"""Lines drawn when unfolded; tools are capped at as many."""

MAX_TITLE_CHARS = 1_000
"""Longer titles are cut before anything else: one row is all they get."""

SEARCHES = ("grep", "find")
"""Tools whose results begin with what was looked for; commands say last how they ended."""

_SHOWN_ELAPSED_S = 1.0
"""A shorter run is not worth a number."""

_BODY = Segment("   ")
_SIZE_IN_TITLE = re.compile(r" \(\+\d+ -\d+\)$")


@dataclass(frozen=True, slots=True)
class Measures:
    """Cells of the screen, and those of the column that text keeps to."""

    width: int
    column: int


def tool_lines(
    block: ToolBlock, palette: Palette, inks: Inks, measures: Measures, *, is_expanded: bool
) -> list[Line]:
    """A tool call: its head line, then the diff, output or plan as far as it is unfolded."""
    head = _tool_head(block, palette, measures.width)
    body: list[Line] = []
    width = measures.width
    if is_expanded and block.command.strip() not in head.text:
        command = safe_output(clip(block.command.strip(), MAX_LINE_CHARS))
        body += prefix_lines(wrap_text(command, palette.text, max(10, width - 5)), [_BODY])
    if block.diff:
        body += _diff(block.diff, palette, inks, measures, is_expanded=is_expanded)
    if is_expanded:
        body += _whole_output(block, palette, width)
        body += prefix_lines(picture_lines(block.images, measures.column, palette), [_BODY])
    elif block.status == "running":
        limit = _LIVE_HELPER_LINES if block.name in ("explore", "delegate") else SHOWN_LINES
        body += _output_excerpt(block, palette, width, limit)
    elif block.status in ("error", "denied") or block.printed_lines is not None:
        body += _output_excerpt(block, palette, width, SHOWN_LINES)
    elif block.name in SEARCHES:
        body += _excerpt(block, palette, width, beginning(block.output), SHOWN_LINES)
    if block.todos and (is_expanded or block.is_new_plan):
        body += _plan(block.todos, palette, measures, is_expanded=is_expanded)
    return [head, *body]


def bash_lines(block: BashBlock, palette: Palette, width: int, *, is_expanded: bool) -> list[Line]:
    """A command of the user's: the command, then the end of its output."""
    style = palette.error if block.status == "error" else palette.accent
    command = safe_text(block.command)
    head = prefix_lines(
        wrap_text(command, palette.strong, max(10, width - 5)),
        [Segment(" $ ", style)],
        [_BODY],
    )
    head = [replace(line, toggles=True) for line in head]
    limit = SHOWN_LINES if block.status == "running" else _FOLDED_BASH_LINES
    notes: list[str] = []
    if block.status == "cancelled":
        notes.append("cancelled")
    elif block.exit_code:
        notes.append(f"exit {block.exit_code}")
    elif block.job:
        notes.append(f"runs in the background: {block.job}")
    if not block.in_context:
        notes.append("not in the model's context")
    if is_expanded:
        rows = [*head, *_whole_output(block, palette, width)]
    else:
        rows = [*head, *_output_excerpt(block, palette, width, limit)]
    if notes:
        note = wrap_text(" · ".join(notes), palette.muted, max(10, width - 5))
        rows += prefix_lines(note, [_BODY])
    return rows


def _tool_head(block: ToolBlock, palette: Palette, width: int) -> Line:
    glyph, style = _status(block.status, palette)
    name = safe_text(block.name[:MAX_TITLE_CHARS], keep_newlines=False)
    title = safe_text(block.title[:MAX_TITLE_CHARS], keep_newlines=False)
    title = title.removeprefix(name).strip()
    if block.diff:  # its size has colours of its own
        title = _SIZE_IN_TITLE.sub("", title)
    notes = _notes(block, palette, title)
    room = width - 5 - cell_len(name) - sum(cell_len(note.text) for note in notes)
    if cell_len(title) > room:
        title = set_cell_size(title, max(1, room - 1)).rstrip() + "…"
    segments = [Segment(f" {glyph} ", style), Segment(name, palette.strong)]
    if title:
        segments.append(Segment(f" {title}", palette.text))
    row = wrap([*segments, *notes], width - 1, words=False)[0]
    return replace(row, lead=3, toggles=True)


def _notes(block: ToolBlock, palette: Palette, title: str) -> list[Segment]:
    """What follows the title: the size of a diff, a result it does not say, how long it took."""
    notes: list[Segment] = []
    if block.diff:
        added, removed = diff_stat(block.diff)
        notes += [Segment(f"  +{added}", palette.success), Segment(f" -{removed}", palette.error)]
    elif block.summary and not title.endswith(block.summary):
        summary = safe_text(block.summary[:MAX_TITLE_CHARS], keep_newlines=False)
        style = palette.error if block.status == "error" else palette.muted
        notes.append(Segment(f"  {set_cell_size(summary, min(cell_len(summary), 40))}", style))
    if block.status in ("denied", "cancelled"):
        if not block.summary:
            notes.append(Segment(f"  {block.status}", palette.warning))
    elif block.elapsed_s is not None and block.elapsed_s >= _SHOWN_ELAPSED_S:
        notes.append(Segment(f"  {short_time(block.elapsed_s)}", palette.muted))
    return notes


def _status(status: ToolStatus, palette: Palette) -> tuple[str, Style]:
    """A mark that can be told from the others without colour, too."""
    return {
        "running": ("◐", palette.running),
        "ok": ("●", palette.success),
        "nothing": ("◦", palette.muted),
        "error": ("✗", palette.error),
        "denied": ("⊘", palette.warning),
        "cancelled": ("○", palette.muted),
    }[status]


def _diff(
    diff: str, palette: Palette, inks: Inks, measures: Measures, *, is_expanded: bool
) -> list[Line]:
    """A diff as wide as the chat."""
    rows = parse_diff(diff)
    if sum(row.kind == "file" for row in rows) == 1:
        rows = tuple(row for row in rows if row.kind != "file")
    limit = _UNFOLDED_LINES if is_expanded else _FOLDED_DIFF_LINES
    shown, hidden = rows, 0
    if len(rows) >= limit + LEAST_FOLDED:
        shown, hidden = fold_context(rows, limit)
    width = max(10, measures.width - 4)
    lines = prefix_lines(diff_lines(shown, width, palette, inks), [_BODY])
    if hidden:
        lines.append(_fold(hidden, palette, is_expanded=is_expanded))
    return lines


def _whole_output(block: ToolBlock | BashBlock, palette: Palette, width: int) -> list[Line]:
    """As much of the end of an output as may be drawn, below how many lines are not."""
    output = block.output.rstrip()
    if not output:
        return []
    hidden = output.count("\n") + 1 - _UNFOLDED_LINES
    if hidden > 1:
        output = "\n".join(output.rsplit("\n", _UNFOLDED_LINES)[1:])
    text = safe_output(clip(output, MAX_LINE_CHARS))
    rows = wrap_text(text, palette.muted, max(10, width - 7), words=_is_prose(block))
    lines = prefix_lines(rows, _edge(palette))
    if hidden := max(hidden, 0) + block.lines_before:
        lines.insert(0, _fold(hidden, palette, is_expanded=True))
    if block.kept_at:
        where = safe_text(f"full output: {block.kept_at}", keep_newlines=False)
        lines += prefix_lines(wrap_text(where, palette.muted, max(10, width - 5)), [_BODY])
    return lines


def _output_excerpt(
    block: ToolBlock | BashBlock, palette: Palette, width: int, limit: int
) -> list[Line]:
    """A few lines of an output, with a line that says how many are folded where they would be."""
    printed = block.printed_lines or 0
    if block.lines_before:
        printed = block.lines_before + block.output.rstrip().count("\n") + 1
    has_failed = block.status == "error"
    found = excerpt(block.output, lines=printed, most=limit, has_failed=has_failed)
    return _excerpt(block, palette, width, found, limit)


def _excerpt(
    block: ToolBlock | BashBlock, palette: Palette, width: int, found: OutputExcerpt, limit: int
) -> list[Line]:
    texts = [safe_output(line[:MAX_LINE_CHARS]) for line in (*found.first, *found.last)]
    room = max(10, width - 7)
    words = _is_prose(block)
    lines = [wrap_text(text, palette.muted, room, words=words) for text in texts]
    if sum(map(len, lines)) >= limit + min(LEAST_FOLDED, limit + 1):
        lines = [[_cut(rows[0], palette)] if len(rows) > 1 else rows for rows in lines]
    rows = [prefix_lines(each, _edge(palette)) for each in lines]
    if found.hidden:
        rows.insert(len(found.first), [_fold(found.hidden, palette, is_expanded=False)])
    return [row for each in rows for row in each]


def _is_prose(block: ToolBlock | BashBlock) -> bool:
    """Whether the output is a sentence of ours: why a call was refused, or failed."""
    is_refusal = block.status in ("denied", "error") and block.printed_lines is None
    return is_refusal and isinstance(block, ToolBlock)


def _cut(row: Line, palette: Palette) -> Line:
    """The first row of a line that continues."""
    text = set_cell_size(row.text, max(1, row.cells - 1)).rstrip()
    return Line((Segment(text, palette.muted), Segment("…", palette.faint)), tail=1)


def _edge(palette: Palette) -> list[Segment]:
    return [_BODY, Segment("│ ", palette.faint)]


def _plan(
    todos: tuple[Todo, ...], palette: Palette, measures: Measures, *, is_expanded: bool
) -> list[Line]:
    """The steps of a plan, each with a sign of how far it is."""
    signs = {
        "completed": ("✓ ", palette.success, palette.muted),
        "in_progress": ("▸ ", palette.accent, palette.strong),
        "pending": ("· ", palette.muted, palette.text),
    }
    limit = _UNFOLDED_LINES if is_expanded else _FOLDED_STEPS
    shown = todos if len(todos) <= limit + 1 else todos[:limit]
    lines: list[Line] = []
    for todo in shown:
        sign, sign_style, style = signs[todo.status]
        text = safe_text(clip(todo.text), keep_newlines=False)
        rows = wrap_text(text, style, max(10, measures.column - 2))
        lines += prefix_lines(rows, [_BODY, Segment(sign, sign_style)], [_BODY, Segment("  ")])
    if hidden := len(todos) - len(shown):
        lines.append(_fold(hidden, palette, is_expanded=is_expanded, what="step"))
    return lines


def _fold(hidden: int, palette: Palette, *, is_expanded: bool, what: str = "line") -> Line:
    """What is not drawn; where it can be had by unfolding, by which key."""
    text = f"… +{count_text(hidden, what)}" + ("" if is_expanded else unfold_hint())
    segments = (_BODY, Segment(text, palette.muted))
    return Line(segments, is_decoration=True, toggles=not is_expanded)


def unfold_hint() -> str:
    """The key that unfolds, behind what is said to be folded."""
    key = keys_in_force().first_key("toggle_details")
    return f" · {key}" if key else ""
