"""Count and find words in texts, ignoring case and accents."""

from collections.abc import Sequence, Set

from agent_tui.text_search import fold, may_hold_accents, place_before_folding

_MOST_COUNTED = 5
"""Most occurrences counted per term: a log with a thousand says no more than one with five."""


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
