"""Caps on what one tool call may give the model, whichever is reached first."""

from dataclasses import dataclass

MAX_OUTPUT_LINES = 2_000
MAX_OUTPUT_BYTES = 50_000
_LEAST_OUTPUT_BYTES = 300
"""Enough for an error or the last lines of a test run."""

_LONGEST_LINE_CHARS = 2_000
_BYTES_A_LINE = MAX_OUTPUT_BYTES // MAX_OUTPUT_LINES


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """What one call may give the model at most."""

    max_bytes: int = MAX_OUTPUT_BYTES

    @property
    def max_lines(self) -> int:
        """Lines in proportion to the bytes: 2,000 at 50,000."""
        return self.max_bytes // _BYTES_A_LINE

    @property
    def max_line_chars(self) -> int:
        """Characters of one line: a single long one leaves room for others."""
        return min(_LONGEST_LINE_CHARS, self.max_bytes // 4)


def output_limits(window: int, calls: int = 1) -> OutputLimits:
    """What one of the `calls` of a reply may give a model with `window` tokens.

    One call gives at most a seventh of the window, all calls of one reply together two sevenths,
    at four bytes a token: a window is compacted at four fifths of the three quarters that are
    not kept for the reply, and what a reply asked for must be in it once before that. 50,000
    bytes from a window of 87,500 tokens on; an unknown window (0) is taken for a large one.
    """
    if window <= 0:
        return OutputLimits()
    seventh_bytes = window * 4 // 7
    share = min(seventh_bytes, 2 * seventh_bytes // max(calls, 1))
    return OutputLimits(min(max(share, _LEAST_OUTPUT_BYTES), MAX_OUTPUT_BYTES))
