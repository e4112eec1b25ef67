"""The one place where text we did not write is made harmless for a terminal and for the eye.

Three ways, over one table of what is suspect. `safe_text` shows what it finds as visible marks:
for what a user reads or decides upon on the screen. `safe_output` first leaves a program's
output as a terminal would. `strip_control_characters` leaves out what it finds: for documents,
the clipboard and what commands print. `safe_json` is for JSON, whose value must not change.
"""

import re
from functools import cache

_TAB_COLUMNS = 4
"""Distance between tab stops, in columns."""

_MARK = "\N{REPLACEMENT CHARACTER}"
_LINE_MARK = "\N{RETURN SYMBOL}"

MOST_STACKED = 8
"""Combining marks kept on one letter: more than any writing needs, too few to cover a line."""

# Patterns are compiled at their first use: large classes take 8 ms, which the first paint needs.
_ESCAPE_SEQUENCES = r"""(?x)
      (?:\x1b\[|\x9b) [0-?]* [ -/]* [@-~]         # CSI: colours, cursor movement
    | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])        # OSC, DCS, SOS, PM, APC: strings ...
      [^\x07\x1b\x9c\n]* (?:\x07|\x1b\\|\x9c)?      # ... up to their end
    | \x1b [ -/]* [0-~]                           # other two- and three-character escapes
    """
_OVERSTRIKE = r"[^\n\x08]\x08"

_HIDDEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\ud800-\udfff"
)
"""Bidi controls, zero-width and other invisible characters, tags, lone surrogates."""

_JOINED = (
    "\u0300-\u034e\u0350-\u0604\u0606-\u061b\u061d-\u06dc\u06de-\u070e\u0710-\u088f\u0892-\u08e1"
    "\u08e3-\u115e\u1161-\u17b3\u17b6-\u180a\u1810-\u1fff\u2190-\u3163\u3165-\ud7ff"
    "\uf900-\ufdff\ufe0e\ufe0f\ufe10-\ufefe\U0001f000-\U0001faff"
)
"""Neighbours between which a joiner is part of the writing (emoji sequences, Indic, Persian)."""

_EMOJI_BASE = (
    "#*0-9\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)
"""Characters after which a text or emoji presentation selector has a meaning."""

_STACKING = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u06d6-\u06dc\u06df-\u06e4"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84\u0f8d-\u0fbc"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ua66f-\ua67d\ufe20-\ufe2f"
)
"""Marks that are drawn above or below the letter before them, however many there are."""

_SUSPECT_ASCII = "[\x00-\x08\x0b-\x1f\x7f]"
_SUSPECT = f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_HIDDEN}]"
_SUSPECT_IN_JSON = f"[\x7f-\x9f\u2028\u2029{_HIDDEN}]"
_SELECTOR = f"(?<![{_EMOJI_BASE}])[\ufe0e\ufe0f]"
_JOINER = f"(?<![{_JOINED}])[\u200c\u200d]|[\u200c\u200d](?![{_JOINED}])"
_STORM = f"[{_STACKING}]{{{MOST_STACKED + 1},}}"


def safe_text(text: str, *, keep_newlines: bool = True) -> str:
    """`text` without anything that could steer the terminal or be invisible.

    Nothing is dropped silently, so that what is shown stays as long as what was meant: control
    characters become their pictures (ESC is shown as ``␛``), bidi controls, invisible
    characters and lone surrogates become ``�``, and so does what is stacked on a letter beyond
    `MOST_STACKED` marks. Line separators become newlines, tabs become spaces. Joiners and emoji
    selectors stay where they belong to the writing. Idempotent; printable text comes back
    unchanged. With `keep_newlines` off the result is one line and each newline is ``⏎``.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if text.isascii():
        text = _compile(_SUSPECT_ASCII).sub(_visible, text)
    else:
        text = _compile(_STORM).sub(lambda storm: storm[0][:MOST_STACKED] + _MARK, text)
        text = _without_stray_joiners(text, _MARK)
        text = _compile(_SUSPECT).sub(_visible, text)
    if "\t" in text:
        text = text.expandtabs(_TAB_COLUMNS)
    if not keep_newlines and "\n" in text:
        text = text.replace("\n", _LINE_MARK)
    return text


def safe_output(text: str) -> str:
    """Output of a program as a terminal would show it at the end, safe to draw.

    Colours and other escape sequences are removed, and so is overwritten text. For text that the
    user decides on, use `safe_text`, which shows everything.
    """
    return safe_text(final_lines(strip_escape_sequences(text)))


def strip_escape_sequences(text: str) -> str:
    """`text` without the sequences that steer a terminal, their contents included.

    A string sequence (OSC, DCS, ...) that never ends goes up to the end of its line.
    """
    if "\x1b" not in text and text.isascii():
        return text
    return _compile(_ESCAPE_SEQUENCES).sub("", text)


def final_lines(text: str) -> str:
    """`text` with carriage returns and backspaces applied to each line."""
    if "\x08" in text:
        text = _compile(_OVERSTRIKE).sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.replace("\r\n", "\n").split("\n"))
    return text


def strip_control_characters(text: str) -> str:
    r"""`text` without escape sequences, control characters and invisible characters.

    Line separators become newlines, lone surrogates U+FFFD; ``\n`` and ``\t`` stay.
    """
    text = strip_escape_sequences(text.replace("\r\n", "\n"))
    if text.isascii():
        return _compile(_SUSPECT_ASCII).sub("", text)
    text = _compile(_SUSPECT).sub(_replace, text)
    text = _without_stray_joiners(text, "")
    return _compile(_STORM).sub(lambda storm: storm[0][:MOST_STACKED], text)


def printable_line(text: str, most_chars: int = 200) -> str:
    """`text` on one line, without control characters, cut to `most_chars`."""
    start = strip_control_characters(text[: most_chars * 4])
    joined = " ".join(start.split())
    return joined if len(joined) <= most_chars else joined[: most_chars - 1] + "…"


def safe_json(text: str) -> str:
    r"""JSON `text` of the same value, with all suspect characters as ``\u`` escapes."""
    return text if text.isascii() else _compile(_SUSPECT_IN_JSON).sub(_escape, text)


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _without_stray_joiners(text: str, instead: str) -> str:
    """`text` with each stray joiner and selector replaced by `instead`.

    Whether one is stray depends on its neighbours.
    """
    if not any(invisible in text for invisible in "\u200c\u200d\ufe0e\ufe0f"):
        return text
    return _compile(_JOINER).sub(instead, _compile(_SELECTOR).sub(instead, text))


def _last_state(line: str) -> str:
    """A line after its carriage returns: the last redraw that is not blank."""
    states = line.split("\r")
    return next((state for state in reversed(states) if state.strip()), states[-1])


def _visible(match: re.Match[str]) -> str:
    """The visible mark for one suspect character."""
    code = ord(match.group())
    if code in (0x2028, 0x2029):
        return "\n"
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    return _MARK


def _replace(match: re.Match[str]) -> str:
    """The replacement for one suspect character in plain text."""
    code = ord(match.group())
    if code in (0x2028, 0x2029):
        return "\n"
    return _MARK if 0xD800 <= code <= 0xDFFF else ""


def _escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
