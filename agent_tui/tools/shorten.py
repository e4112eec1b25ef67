"""What one call may give the model: the limits, text cut to them, and files with the whole text."""

import os
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agent_tui.omissions import cut_end_mark, omission_mark
from agent_tui.paths import make_private_dir
from agent_tui.safe_text import final_lines, strip_escape_sequences

MAX_OUTPUT_LINES = 2_000
MAX_OUTPUT_BYTES = 50_000
_LEAST_OUTPUT_BYTES = 300
"""Bytes; enough for an error or the last lines of a test run."""

_RANGE_BYTES_A_TOKEN = 3
_LONGEST_LINE_CHARS = 2_000
_BYTES_A_LINE = MAX_OUTPUT_BYTES // MAX_OUTPUT_LINES

_MARKER_BYTES = 80
"""Bytes reserved for the line that says how much was left out."""

_HEAD_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """The most that one call may give the model.

    Args:
        max_bytes: Limit for any output.
        range_bytes: Limit for lines requested by number, which are given whole up to here.
        whose: What has the limit, and why.
    """

    max_bytes: int = MAX_OUTPUT_BYTES
    range_bytes: int = 0
    whose: str = "a call"

    @property
    def cap(self) -> str:
        """The limit as the model is told when output is cut."""
        return f"{self.max_bytes:,} bytes or {self.max_lines:,} lines {self.whose}"

    @property
    def max_lines(self) -> int:
        """The limit in lines, in proportion to the bytes: 2,000 at 50,000."""
        return self.max_bytes // _BYTES_A_LINE

    @property
    def max_line_chars(self) -> int:
        """Characters of one line, so that a long one leaves space for others."""
        return min(_LONGEST_LINE_CHARS, self.max_bytes // 4)


def output_limits(
    window: int, calls: int = 1, *, given_bytes: int = 0, done: int = 0, room_tokens: int = 0
) -> OutputLimits:
    """What the next of a reply's `calls` may give a model with a window of `window` tokens.

    One call gives at most a seventh of the window, all calls of one reply together two sevenths, at
    four bytes a token: a window is compacted at four fifths of the three quarters that are not
    reserved for the reply, and what a reply requested must fit once before that. Unused shares of
    the first calls go to later ones. The limit is 50,000 bytes from a window of 87,500 tokens on;
    an unknown window (0) counts as large.

    Args:
        window: Tokens of the model's window.
        calls: How many calls the reply has.
        given_bytes: What the first `done` of them gave.
        done: How many of them have their results.
        room_tokens: Free tokens before compaction. Lines requested by number may fill the call's
            share of them, at three bytes a token (code has more).
    """
    if window <= 0:
        return OutputLimits()
    left = max(calls - done, 1)
    seventh_bytes = window * 4 // 7
    pool_bytes = 2 * seventh_bytes
    share = min(seventh_bytes, max(pool_bytes // max(calls, 1), (pool_bytes - given_bytes) // left))
    max_bytes = min(max(share, _LEAST_OUTPUT_BYTES), MAX_OUTPUT_BYTES)
    range_bytes = (room_tokens * _RANGE_BYTES_A_TOKEN - given_bytes) // left
    if max_bytes == MAX_OUTPUT_BYTES:
        return OutputLimits(range_bytes=max(range_bytes, 0))
    whose = "a call" if calls == 1 else f"for one of {calls} calls in a reply"
    return OutputLimits(max_bytes, max(range_bytes, 0), f"{whose}: the window is {window:,} tokens")


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


def new_output_file(folder: Path, tool: str, suffix: str) -> tuple[Path, BinaryIO]:
    """Create a file that only its owner can read, open for writing.

    Args:
        folder: Where it goes; created if missing.
        tool: The start of its name, before a random part.
        suffix: The end of its name, such as ``.txt``.

    Raises:
        OSError: It cannot be created.
    """
    path = make_private_dir(folder) / f"{tool}-{secrets.token_hex(8)}{suffix}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return path, os.fdopen(descriptor, "wb")


def keep_output(text: str, folder: Path, tool: str, suffix: str) -> Path | None:
    """Write all of `text` to a new file; None if that fails."""
    try:
        path, file = new_output_file(folder, tool, suffix)
        with file:
            file.write(text.encode("utf-8", "replace"))
    except OSError:
        return None
    return path
