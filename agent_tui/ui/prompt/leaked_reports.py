"""Terminal reports that leaked into the input: found and taken out again."""

import re

# An SGR mouse report whose leading ESC was read as a key of its own (xterm, "Extended
# coordinates"): the rest arrives as if it had been typed.
_MOUSE_REPORT = r"\x1b?\[<\d{1,3};\d{1,5};\d{1,5}[Mm]"
_TYPED_REPORT = re.compile(_MOUSE_REPORT + r"$")
_SEQUENCES = re.compile(
    _MOUSE_REPORT
    + r"|\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    + r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC
    + r"|\x1b[@-Z\\-_]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def report_length(text_before_cursor: str) -> int:
    """Length of the mouse report that was just completed at the cursor, 0 if none was."""
    found = _TYPED_REPORT.search(text_before_cursor[-24:])
    return len(found[0]) if found else 0


def clean_paste(text: str) -> str:
    """`text` with line ends as ``\\n`` and without escape sequences and control characters."""
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _SEQUENCES.sub("", unix))
