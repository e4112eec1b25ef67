"""Turning what a command printed for a terminal into plain text for the model."""

import re

from agent_tui.text import strip_escape_sequences

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_OVERSTRIKE = re.compile(r"[^\n\x08]\x08")


def plain_text(printed: str) -> str:
    """`printed` without escapes and control characters, as a screen would show it at the end.

    Lines that were redrawn with carriage returns (progress bars) keep their last state.
    """
    text = strip_escape_sequences(printed)
    if "\x08" in text:
        text = _OVERSTRIKE.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.replace("\r\n", "\n").split("\n"))
    return _CONTROLS.sub("", text)


def _last_state(line: str) -> str:
    """What is left of a line after its carriage returns: the last redraw that shows anything."""
    states = line.split("\r")
    return next((state for state in reversed(states) if state.strip()), states[-1])
