"""Limits on what one tool call may give the model, whichever is reached first."""

from dataclasses import dataclass

MAX_OUTPUT_LINES = 2_000
MAX_OUTPUT_BYTES = 50_000
_LEAST_OUTPUT_BYTES = 300
"""Bytes; enough for an error or the last lines of a test run."""

_RANGE_BYTES_A_TOKEN = 3
_LONGEST_LINE_CHARS = 2_000
_BYTES_A_LINE = MAX_OUTPUT_BYTES // MAX_OUTPUT_LINES


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
