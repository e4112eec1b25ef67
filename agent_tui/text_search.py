"""Search texts for typed queries: parse, fold, and locate matches.

The searches in all sessions, in a session's history and in the chat use this.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_QUERY_PART = re.compile(r'"([^"]*)("?)|([^\s"]+)')
_ACCENTS = re.compile("[\u0300-\u036f]")
_NEVER_FOLDED_TO_ASCII = bytes(set(range(256)) - {*range(0xC3, 0xCB), 0xCC, 0xCD, 0xE1, 0xEF})


def fold(text: str) -> str:
    """`text` in lower case without accents; in ASCII text, characters keep their positions."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text).casefold()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", plain))


def place_before_folding(text: str, place: int) -> int:
    """The index in `text` of the character that gave the one at `place` of the folded text."""
    if text.isascii():
        return place
    length = 0
    for at, character in enumerate(text):
        length += len(fold(character))
        if length > place:
            return at
    return 0


def lower_in_place(text: str) -> str:
    """`text` in lower case, with all characters at their positions."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)


def may_hold_accents(data: bytes) -> bool:
    """Whether UTF-8 data may have letters that fold to ASCII: accented, full width ..."""
    return not data.isascii() and bool(data.translate(None, _NEVER_FOLDED_TO_ASCII))


def split_query(query: str) -> Iterator[tuple[str, bool]]:
    """Each word and ``"quoted phrase"`` of `query`, and whether it may be incomplete."""
    for match in _QUERY_PART.finditer(query):
        at_end = match.end() == len(query)
        phrase, closing, word = match.groups()
        if word is None:
            yield phrase, at_end and not closing
        else:
            yield word, at_end


@dataclass(frozen=True, slots=True)
class SmartCaseText:
    """A search text that ignores case unless it was typed with a capital.

    Only case is folded, so that positions found are positions in the shown text.
    """

    text: str
    is_exact: bool

    @staticmethod
    def of(typed: str) -> "SmartCaseText":
        """Case matters if `typed` has a capital letter."""
        is_exact = typed != typed.lower()
        return SmartCaseText(typed if is_exact else lower_in_place(typed), is_exact)

    def count(self, text: str) -> int:
        """The number of occurrences in `text`, without overlaps."""
        return (text if self.is_exact else lower_in_place(text)).count(self.text)

    def places(self, text: str) -> list[int]:
        """The positions in `text`, without overlaps."""
        text = text if self.is_exact else lower_in_place(text)
        places: list[int] = []
        at = text.find(self.text)
        while at >= 0:
            places.append(at)
            at = text.find(self.text, at + len(self.text))
        return places
