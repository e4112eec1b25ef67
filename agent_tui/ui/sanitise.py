"""Makes text we did not write safe to draw: no control sequence reaches the terminal.

Nothing is dropped silently by `safe_text`: what could steer the terminal or deceive the eye is
replaced by a visible mark, so that what is shown stays as long as what was meant.
"""

import re
from functools import cache

TAB_COLUMNS = 4
"""Distance between tab stops, in columns."""

MARK = "\N{REPLACEMENT CHARACTER}"
LINE_MARK = "\N{RETURN SYMBOL}"

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

# The large classes are compiled at their first use: that takes 8 ms, which the first paint needs.
_SUSPECT_ASCII = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_SUSPECT = f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_HIDDEN}]"
_SELECTOR = f"(?<![{_EMOJI_BASE}])[\ufe0e\ufe0f]"
_JOINER = f"(?<![{_JOINED}])[\u200c\u200d]|[\u200c\u200d](?![{_JOINED}])"

_ESCAPE_SEQUENCE = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI: colours, cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]{0,4}[0-~]"  # two-character escapes
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
)


def safe_text(text: str, *, keep_newlines: bool = True) -> str:
    """`text` with nothing in it that could steer the terminal or hide from the eye.

    Control characters become their pictures (ESC is shown as ``␛``), bidi controls, invisible
    characters and lone surrogates become ``�``, line separators become newlines, tabs become
    spaces. Joiners and emoji selectors stay where they belong to the writing. Idempotent;
    printable text comes back unchanged. With `keep_newlines` off the result is one line and
    each newline is shown as ``⏎``.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if text.isascii():
        text = _SUSPECT_ASCII.sub(_visible, text)
    else:
        # Whether a selector or joiner is in its place depends on what stands beside it.
        if any(invisible in text for invisible in "\u200c\u200d\ufe0e\ufe0f"):
            text = _compiled(_JOINER).sub(MARK, _compiled(_SELECTOR).sub(MARK, text))
        text = _compiled(_SUSPECT).sub(_visible, text)
    if "\t" in text:
        text = text.expandtabs(TAB_COLUMNS)
    if not keep_newlines and "\n" in text:
        text = text.replace("\n", LINE_MARK)
    return text


def safe_output(text: str) -> str:
    """Output of a program, as a terminal would leave it, safe to draw.

    Colours and other escape sequences are left out, and of a line that was written over with
    carriage returns (progress bars) only its last state stays. For text a person decides upon
    use `safe_text`, which shows everything.
    """
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPE_SEQUENCE.sub("", text)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return safe_text(text)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _visible(match: re.Match[str]) -> str:
    """The mark that stands for one suspect character."""
    code = ord(match.group())
    if code in (0x2028, 0x2029):
        return "\n"
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    return MARK
