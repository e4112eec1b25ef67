"""Texts that try to steer a terminal, to deceive the eye, or to be taken for markup."""

import re
import unicodedata

from hypothesis import strategies as st

ATTACKS = {
    "CSI": "a\x1b[2J\x1b[31mb",
    "title": "a\x1b]0;owned\x07b",
    "window title": "a\x1b]2;owned\x1b\\b",
    "link": "a\x1b]8;;http://evil.example/\x1b\\b\x1b]8;;\x1b\\",
    "notification": "a\x1b]9;boo\x07b",
    "clipboard": "a\x1b]52;c;cm0gLXJmIH4K\x07b",
    "file transfer": "a\x1b]1337;File=inline=1:AAAA\x07b",
    "urxvt notification": "a\x1b]777;notify;t;boo\x07b",
    "DCS": "a\x1bP+q544e\x1b\\b",
    "sixel": "a\x1bPq#0;2;0;0;0~-\x1b\\b",
    "APC": "a\x1b_Gi=1;AAAA\x1b\\b",
    "PM": "a\x1b^boo\x1b\\b",
    "SOS": "a\x1bXboo\x1b\\b",
    "8-bit CSI": "a\x9b2Jb",
    "8-bit OSC": "a\x9d0;owned\x9cb",
    "8-bit DCS": "a\x90boo\x9cb",
    "8-bit APC": "a\x9fboo\x9cb",
    "charset": "a\x1b(0b\x0eb",
    "reset": "a\x1bcb",
    "cut CSI": "ab\x1b[31",
    "cut OSC": "ab\x1b]52;c;cm0g",
    "a lone escape": "ab\x1b",
    "escape inside OSC": "a\x1b]0;x\x1b[31m\x07b",
    "tmux passthrough": "a\x1bPtmux;\x1b\x1b]52;c;cm0g\x07\x1b\\b",
    "overwritten": "harmless\rab",
    "backspaces": "harmless\x08\x08\x08\x08ab",
    "bell and NUL": "a\x07\x00b",
    "line separators": "a\u2028\u2029b",
    "bidi override": "a\u202egpj.exe\u202cb",
    "bidi isolate": "a\u2066x\u2069b",
    "bidi marks": "a\u200e\u200f\u061cb",
    "zero-width": "a\u200b\u2060\ufeffb",
    "a stray joiner": "a\u200d\u200cb",
    "tags": "a" + "".join(chr(0xE0000 + ord(c)) for c in "obey me") + "b",
    "variation selectors": "a\ufe01\U000e0101\ufe0fb",
    "a storm of marks": "a" + "\u0300\u0316\u0488" * 500 + "b",
    "fillers": "a\u3164\u115f\uffa0\u00adb",
    "lone surrogates": "a\ud83d\udc80\udfffb",
    "interlinear": "a\ufff9x\ufffbb",
}

MARKUP = (
    "[red]x[/red]",
    "[link=http://x]y[/link]",
    "[@click=app.quit]z[/]",
    "[/]",
    "$primary",
    "[b",
)

_PIECES = [*ATTACKS.values(), *MARKUP, "\x1b", "]", "[", "\x07", "\x9b", "\r", "\n", "\t", "m", ";"]
hostile_text = st.lists(
    st.sampled_from(_PIECES)
    | st.text(st.characters(codec=None, exclude_categories=()), max_size=5),
    max_size=6,
).map("".join)
"""Any mixture of attacks, pieces of them, and other characters."""

_INVISIBLE = re.compile(
    "[\u00ad\u061c\u115f\u1160\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\U000e0000-\U000e0fff]"
)
_STORM = re.compile("[\u0300-\u036f\u0483-\u0489]{9,}")


def what_is_left(text: str) -> set[str]:
    """Everything in `text` that a terminal would obey or an eye not see; newlines may stay."""
    bad = {c for c in text if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}} - {"\n", "\t"}
    return bad | set(_INVISIBLE.findall(text)) | set(_STORM.findall(text))
