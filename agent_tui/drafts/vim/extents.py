"""How much of a text a command is about."""

from dataclasses import replace

from agent_tui.drafts.vim.commands import Command
from agent_tui.drafts.vim.edits import Buffer, Extent, whole_lines
from agent_tui.drafts.vim.lines import Goal, line_end, line_start, lines_away


def plain(command: Command) -> Command:
    """The operator and motion that a short command stands for."""
    short = {
        "x": ("d", "l"),
        "X": ("d", "h"),
        "s": ("c", "l"),
        "S": ("c", "line"),
        "D": ("d", "$"),
        "C": ("c", "$"),
        "Y": ("y", "line"),
    }.get(command.name)
    return command if short is None else replace(command, name=short[0], motion=short[1])


def after_copying(buffer: Buffer, extent: Extent) -> int:
    """Where the cursor is then: at the start, of lines in the column it had."""
    if not extent.lines:
        return extent.start
    text, at = buffer.text, buffer.cursor
    rows = text.count("\n", extent.start, at)
    above = lines_away(text, at, -rows, at - line_start(text, at))
    return at if above is None else above


def between(text: str, at: int, goal: Goal, motion: str) -> Extent:
    """What lies between the cursor and where a motion leads."""
    start, end = sorted((at, goal.at))
    if goal.kind == "lines":
        return whole_lines(text, start, end)
    if goal.kind == "inclusive":
        return Extent(start, min(end + 1, line_end(text, end)))
    if motion in ("w", "W"):
        feed = text.rfind("\n", start, end)
        if feed >= 0 and not text[feed:end].strip():
            end = feed  # the last word's line is not joined with the next
    elif end > start and text[end - 1] == "\n":
        if not text[line_start(text, start) : start].strip():
            return whole_lines(text, start, end - 1)
        end -= 1
    return Extent(start, end)


def sized(text: str, at: int, size: int, *, of_lines: bool) -> Extent:
    """As much as was selected when the command was given first."""
    if of_lines:
        below = lines_away(text, at, size - 1, 0) if size > 1 else at
        return whole_lines(text, at, at if below is None else below)
    return Extent(at, min(at + size, len(text)))
