"""Search texts for typed queries: parse, fold, and locate matches.

The searches in all sessions, in a session's history and in the chat use this.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

_MOST_COUNTED = 5
"""Most occurrences counted per term: a log with a thousand says no more than one with five."""

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


class TermSet:
    """Words and phrases to find anywhere in a text, ignoring case and accents.

    Texts are compared as bytes: lowering these is several times faster than folding, which is only
    done if the terms or the text need it.

    Args:
        terms: The terms as typed.
    """

    def __init__(self, terms: Sequence[str]) -> None:
        self._terms = {_encode(fold(term)): term for term in terms}
        self._are_ascii = all(map(bytes.isascii, self._terms))

    def __len__(self) -> int:
        return len(self._terms)

    def fold_text(self, text: str) -> bytes:
        """`text` in the form for comparison."""
        data = _encode(text)
        if data.isascii() or (self._are_ascii and not may_hold_accents(data)):
            return data.lower()
        return _encode(fold(text))

    def find_in(self, folded: bytes) -> Set[bytes]:
        """The terms that occur, folded."""
        return {term for term in self._terms if term in folded}

    def count_in(self, folded: bytes) -> int:
        """The number of occurrences, at most a few per term."""
        return sum(min(folded.count(term), _MOST_COUNTED) for term in self._terms)

    def first_place(self, text: str) -> int:
        """Where the first term begins in `text`; 0 if none occurs."""
        folded = _encode(fold(text))
        places = [at for term in self._terms if (at := folded.find(term)) >= 0]
        if not places:
            return 0
        characters = folded[: min(places)].decode("utf-8", "surrogatepass")
        return place_before_folding(text, len(characters))

    def without(self, found: Set[bytes]) -> tuple[str, ...]:
        """The terms that are not in `found`, as typed."""
        return tuple(typed for term, typed in self._terms.items() if term not in found)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


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
