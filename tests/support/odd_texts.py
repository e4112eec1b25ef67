"""Texts that models have put, or could put, where a name or a word is expected."""

from types import MappingProxyType

LONG_PATTERN = "|".join(f"word_{number}" for number in range(40))
"""An everyday search for many words, longer than any file name may be."""

_LONG_CHARS = 200_000
"""More than Linux takes as one argument of a program (131,072 bytes), and than a path may have."""

ODD_TEXTS = MappingProxyType(
    {
        "longer than a file name": "a" * 256,
        "a long pattern": LONG_PATTERN,
        "longer than a path": "a" * 5_000,
        "longer than an argument": "a" * _LONG_CHARS,
        "as many folders": "a/" * (_LONG_CHARS // 2),
        "as many upward": "../" * (_LONG_CHARS // 3),
        "a NUL": "a\0b",
        "a lone surrogate": "a\ud800b",
        "no UTF-8": "a\udcffb",
        "a link in a circle": "circle",
        "below a link in a circle": "circle/a",
        "the home of nobody": "~nobody-of-this-name/a",
        "a long home": "~" + "u" * 300,
        "open brackets": "[" * 2_000,
        "nested brackets": "[" * 100_000,
        "quotes": "'" * 1_000,
        "blank lines": "\n" * 100_000,
        "backslashes": "\\" * 100_000,
        "empty": "",
    }
)
"""By what they are. ``circle`` is a link to itself, where a test makes one."""
