"""What bash makes of escapes in ``$'...'`` and in the format of ``printf``."""

import re

_ESCAPE = re.compile(
    r"\\(?:x(?P<hex>[0-9A-Fa-f]{1,2})|u(?P<short>[0-9A-Fa-f]{1,4})|U(?P<long>[0-9A-Fa-f]{1,8})"
    r"|(?P<octal>[0-7]{1,3})|(?P<letter>.))",
    re.DOTALL,
)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f"}


def ansi_c_text(text: str) -> str:
    """`text` with its escapes put in; one that names no character is left out."""
    return _ESCAPE.sub(_character, text)


def _character(found: re.Match[str]) -> str:
    if letter := found["letter"]:
        return _LETTERS.get(letter, letter)
    number = int(found["octal"], 8) if found["octal"] else 0
    number = number or int(found["hex"] or found["short"] or found["long"] or "0", 16)
    return chr(number) if 0 < number < 0x110000 else ""
