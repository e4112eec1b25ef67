"""Large pastes: shown in the prompt as one short mark, sent whole."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

PASTE_LINES = 10
PASTE_CHARS = 1_000
"""A paste longer than either is shown as a mark."""

_MARK = re.compile(r"\[paste #(\d+) [^\]\n]*\]")
_LONGEST_MARK = 60


def _no_pastes() -> Mapping[int, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Draft:
    """What stands in the prompt: the text as shown, and the pastes its marks stand for."""

    text: str = ""
    pastes: Mapping[int, str] = field(default_factory=_no_pastes)

    @property
    def full_text(self) -> str:
        """The text with every known mark replaced by what was pasted."""
        return _MARK.sub(lambda mark: self.pastes.get(int(mark[1]), mark[0]), self.text)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing but blanks."""
        return not self.text.strip()

    def trimmed(self) -> "Draft":
        """Without blanks at both ends and without pastes that no mark names any more."""
        named = {int(mark[1]) for mark in _MARK.finditer(self.text)}
        kept = {number: text for number, text in self.pastes.items() if number in named}
        return Draft(self.text.strip(), kept)


def is_large(text: str) -> bool:
    """Whether a paste is shown as a mark instead of as text."""
    return text.count("\n") >= PASTE_LINES or len(text) > PASTE_CHARS


def paste_mark(number: int, text: str) -> str:
    """The mark for paste `number`: ``[paste #1 +9,999 lines]``, or its length if one line."""
    more_lines = text.count("\n")
    size = f"+{more_lines:,} lines" if more_lines else f"{len(text):,} chars"
    return f"[paste #{number} {size}]"


def mark_before(text: str) -> int:
    """Length of the mark that `text` ends with, 0 if it ends with none."""
    tail = text[-_LONGEST_MARK:]
    ends = [mark for mark in _MARK.finditer(tail) if mark.end() == len(tail)]
    return len(ends[0][0]) if ends else 0
