"""Cuts long text to what a model should receive, by lines and by bytes."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent_tui.omissions import cut_end_mark, omission_mark
from agent_tui.safe_text import final_lines, strip_escape_sequences

_MARKER_BYTES = 80
"""Bytes reserved for the line that says how much was left out."""

_HEAD_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Shortened:
    """The text that was kept, and how much was not.

    `left_out` are the first and last omitted or incomplete line, counted as in `keep_ends`.
    """

    text: str
    omitted_lines: int = 0
    omitted_bytes: int = 0
    left_out: tuple[int, int] = (0, 0)

    @property
    def is_cut(self) -> bool:
        """Whether anything was left out."""
        return self.omitted_bytes > 0


def size_bytes(text: str) -> int:
    """Length of `text` in UTF-8; lone surrogates count as three bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def keep_head(text: str, *, max_lines: int, max_bytes: int) -> Shortened:
    """The first whole lines of `text` that fit; at least part of the first one."""
    lines = text.split("\n")
    total = size_bytes(text)
    if len(lines) <= max_lines and total <= max_bytes:
        return Shortened(text)
    kept = "\n".join(_fitting(lines[:max_lines], max_bytes))
    if not kept:
        kept = _prefix(lines[0], max_bytes)
    omitted = len(lines) - (kept.count("\n") + 1)
    return Shortened(kept, omitted, total - size_bytes(kept))


def keep_ends(
    text: str, *, max_lines: int, max_bytes: int, first_line: int = 1, lines_held_back: int = 0
) -> Shortened:
    """The start and, larger, the end of `text`, with a line between that says what is missing.

    The end of a command's output usually has the error or the totals, so the start gets less. The
    result, including the marker, stays within both limits.

    Args:
        text: The text to shorten.
        max_lines: How many lines of it are kept.
        max_bytes: How many bytes.
        first_line: The number of its first line.
        lines_held_back: How many more lines its middle has than `text`.
    """
    lines = text.split("\n")
    total = size_bytes(text)
    if len(lines) <= max_lines and total <= max_bytes:
        return Shortened(text)
    budget = max_bytes - _MARKER_BYTES
    if budget < _MARKER_BYTES or max_lines < 3:
        return keep_head(text, max_lines=max_lines, max_bytes=max_bytes)
    head_bytes = int(budget * _HEAD_SHARE)
    head_lines = max(1, int((max_lines - 1) * _HEAD_SHARE))
    head = _fitting(lines[:head_lines], head_bytes) or [_prefix(lines[0], head_bytes)]
    after_head = lines[len(head) :]
    if not after_head:
        after_head = [lines[0][len(head[0]) :]]
    tail_bytes = budget - size_bytes("\n".join(head))
    tail_lines = max_lines - 1 - len(head)
    tail = _fitting(reversed(after_head[-tail_lines:]), tail_bytes)[::-1]
    if not tail:
        tail = [_suffix(after_head[-1], tail_bytes)]
    omitted_lines = max(0, len(lines) - len(head) - len(tail))
    omitted_bytes = total - size_bytes("\n".join(head)) - size_bytes("\n".join(tail))
    is_begun, is_ended = head[-1] != lines[len(head) - 1], tail[0] != lines[-len(tail)]
    total = first_line - 1 + len(lines) + lines_held_back
    first = first_line + len(head) - is_begun
    last = total - len(tail) + is_ended
    is_partial = is_begun or is_ended or not omitted_lines
    amount = f"{omitted_bytes} bytes" if is_partial else f"lines {first}-{last} of {total}"
    text = "\n".join([*head, omission_mark(amount), *tail])
    return Shortened(text, omitted_lines, omitted_bytes, (first, last))


def cut_line(line: str, max_chars: int) -> str:
    """`line`, or its start and how many characters follow."""
    if len(line) <= max_chars:
        return line
    return line[:max_chars] + cut_end_mark(len(line) - max_chars)


def _fitting(lines: Iterable[str], max_bytes: int) -> list[str]:
    """As many of `lines`, from the first on, as fit into `max_bytes` with their newlines."""
    kept: list[str] = []
    used = 0
    for line in lines:
        used += size_bytes(line) + 1
        if used > max_bytes + 1:
            break
        kept.append(line)
    return kept


def _prefix(line: str, max_bytes: int) -> str:
    return line.encode("utf-8", "replace")[: max(max_bytes, 0)].decode("utf-8", "ignore")


def _suffix(line: str, max_bytes: int) -> str:
    encoded = line.encode("utf-8", "replace")
    return encoded[max(0, len(encoded) - max_bytes) :].decode("utf-8", "ignore")


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain_text(printed: str) -> str:
    """`printed` without escapes and control characters, as a screen would finally show it.

    Lines redrawn with carriage returns (progress bars) keep their last state.
    """
    return _CONTROLS.sub("", final_lines(strip_escape_sequences(printed)))
