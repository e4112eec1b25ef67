"""How well a few typed letters fit a name: in linear time, whatever the name."""

from dataclasses import dataclass
from itertools import pairwise

from agent_tui.text_search import lower_in_place

_WORD_START = 1.0
_NEIGHBOUR = 1.0
_WHOLE = 100.0
_BEGINS = 50.0
_INSIDE = 10.0
_PER_GAP = 0.05


@dataclass(frozen=True, slots=True)
class FuzzyMatch:
    """`score` is higher the better it fits; `offsets` are the letters of the name that fit."""

    score: float
    offsets: tuple[int, ...]


def fuzzy_match(typed: str, name: str) -> FuzzyMatch | None:
    """Where `name` has the letters of `typed` in their order; None if it has not.

    A name that is `typed` comes before one that begins so, that before one in which a word
    begins so, that before one that has it anywhere, and that before one with letters between.
    """
    wanted, letters = lower_in_place(typed), lower_in_place(name)
    if not wanted:
        return FuzzyMatch(0.0, ())
    place = _best_place(wanted, letters)
    if place >= 0:
        bonus = _WHOLE if wanted == letters else _BEGINS if place == 0 else _INSIDE
        offsets = tuple(range(place, place + len(wanted)))
        return FuzzyMatch(_score(offsets, letters) + bonus, offsets)
    scattered = _scattered(wanted, letters)
    return FuzzyMatch(_score(scattered, letters), scattered) if scattered else None


def _best_place(wanted: str, letters: str) -> int:
    """Where `wanted` stands whole, at the beginning of a word if it does; -1 if nowhere."""
    first = place = letters.find(wanted)
    while place > 0 and not _begins_word(letters, place):
        place = letters.find(wanted, place + 1)
    return first if place < 0 else place


def _scattered(wanted: str, letters: str) -> tuple[int, ...]:
    """The shortest stretch that ends where the letters first are all there."""
    place = -1
    for letter in wanted:
        place = letters.find(letter, place + 1)
        if place < 0:
            return ()
    offsets = [place]
    for letter in reversed(wanted[:-1]):
        place = letters.rfind(letter, 0, place)
        offsets.append(place)
    return tuple(reversed(offsets))


def _begins_word(letters: str, place: int) -> bool:
    return place == 0 or not letters[place - 1].isalnum()


def _score(offsets: tuple[int, ...], letters: str) -> float:
    starts = sum(_begins_word(letters, place) for place in offsets)
    neighbours = sum(after == before + 1 for before, after in pairwise(offsets))
    gaps = offsets[-1] - offsets[0] + 1 - len(offsets)
    return len(offsets) + _WORD_START * starts + _NEIGHBOUR * neighbours - _PER_GAP * gaps
