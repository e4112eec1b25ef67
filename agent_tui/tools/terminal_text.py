"""Turning what a command printed for a terminal into plain text for the model."""

import re

from agent_tui.safe_text import final_lines, strip_escape_sequences

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain_text(printed: str) -> str:
    """`printed` without escapes and control characters, as a screen would show it at the end.

    Lines that were redrawn with carriage returns (progress bars) keep their last state.
    """
    return _CONTROLS.sub("", final_lines(strip_escape_sequences(printed)))
