"""What commands make of a text: each takes a buffer and gives the changed one."""

from dataclasses import dataclass, replace
from typing import Final

from agent_tui.drafts.vim.lines import first_letter, line_end, line_start, on_a_letter

_MOST_CHARS: Final = 1_000_000
"""A count that would make the text longer than this is cut."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A text, and the place in it where the cursor is."""

    text: str
    cursor: int = 0

    def replaced(self, start: int, end: int, by: str, cursor: int) -> "Buffer":
        """The same with other text from `start` to `end`."""
        return Buffer(self.text[:start] + by + self.text[end:], cursor)


@dataclass(frozen=True, slots=True)
class Extent:
    """A part of a text, from `start` up to `end`; `lines`: it is of whole lines."""

    start: int
    end: int
    lines: bool = False


@dataclass(frozen=True, slots=True)
class Register:
    """What was cut or copied last."""

    text: str = ""
    lines: bool = False


def whole_lines(text: str, start: int, last: int) -> Extent:
    """The lines from that of `start` to that of `last`, without the last line feed."""
    return Extent(line_start(text, start), line_end(text, last), lines=True)


def copied(buffer: Buffer, extent: Extent) -> Register:
    """What an extent holds."""
    return Register(buffer.text[extent.start : extent.end], extent.lines)


def cut(buffer: Buffer, extent: Extent) -> Buffer:
    """The text without an extent; of lines, with one line feed less."""
    text, start, end = buffer.text, extent.start, extent.end
    if not extent.lines:
        left = buffer.replaced(start, end, "", start)
        return replace(left, cursor=on_a_letter(left.text, start))
    if end < len(text):
        end += 1
    elif start > 0:
        start -= 1
    left = buffer.replaced(start, end, "", min(extent.start, len(text) - (end - start)))
    return replace(left, cursor=first_letter(left.text, left.cursor))


def pasted(
    buffer: Buffer, register: Register, count: int, *, before: bool, over: bool = False
) -> Buffer:
    """The text with what was cut or copied, so many times.

    Args:
        buffer: The text; its cursor is where it goes.
        register: What goes in.
        count: How often.
        before: At the cursor instead of behind it, or above instead of below.
        over: Something stood at the cursor and was cut: no line feed is there for lines.
    """
    times = max(1, min(count, _MOST_CHARS // max(len(register.text), 1)))
    text, at = buffer.text, buffer.cursor
    if register.lines:
        lines = "\n".join([register.text] * times)
        if over:
            return buffer.replaced(at, at, f"\n{lines}\n", at + 1)
        place = line_start(text, at) if before else line_end(text, at)
        new = f"{lines}\n" if before else f"\n{lines}"
        made = buffer.replaced(place, place, new, place if before else place + 1)
        return replace(made, cursor=first_letter(made.text, made.cursor))
    place = at if before else min(at + 1, line_end(text, at))
    new = register.text * times
    end = place if "\n" in new else max(place + len(new) - 1, place)
    return buffer.replaced(place, place, new, end)


def joined_lines(buffer: Buffer, count: int) -> Buffer:
    """The cursor's line and those below it as one, a blank between them."""
    for _ in range(max(count - 1, 1)):
        text = buffer.text
        end = line_end(text, buffer.cursor)
        if end == len(text):
            break
        below = text[end + 1 : line_end(text, end + 1)]
        start = end + 1 + len(below) - len(below.lstrip())
        is_bare = not below.strip() or below.lstrip().startswith(")")
        between = "" if is_bare or end == 0 or text[end - 1].isspace() else " "
        buffer = buffer.replaced(end, start, between, end)
    return replace(buffer, cursor=on_a_letter(buffer.text, buffer.cursor))


def turned_case(buffer: Buffer, extent: Extent, cursor: int) -> Buffer:
    """Small letters for capitals in an extent, and the other way round."""
    turned = buffer.text[extent.start : extent.end].swapcase()
    made = buffer.replaced(extent.start, extent.end, turned, cursor)
    return replace(made, cursor=on_a_letter(made.text, min(cursor, len(made.text))))


def overwritten(buffer: Buffer, extent: Extent, letter: str, cursor: int) -> Buffer:
    """`letter` in place of every character of an extent but line feeds."""
    part = buffer.text[extent.start : extent.end]
    new = "".join(old if old == "\n" else letter for old in part)
    return buffer.replaced(extent.start, extent.end, new, cursor)
