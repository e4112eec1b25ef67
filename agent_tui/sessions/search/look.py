"""Looking for words in the lines of a session file: which occur, how often, and where."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agent_tui.sessions.listing.summary import one_line
from agent_tui.sessions.search.query import Needle
from agent_tui.sessions.search.words import fold, load_record, record_text

MOST_MATCHES = 10
"""More matching entries of one session are not counted."""

_CHARS_BEFORE, _CHARS_SHOWN = 40, 160
_NOT_ACCENTED = bytes(set(range(256)) - {*range(0xC3, 0xCB), 0xCC, 0xCD, 0xE1, 0xEF})
"""Bytes of UTF-8 that begin no letter that is ASCII once folded (accented, full width ...)."""

_ESCAPED = re.compile(rb"\\u(?:00[c-f]|0[12]|03[0-6]|1e|212|f[bf])", re.IGNORECASE)
"""Such letters, escaped by another program."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was found: numbers of the needles, matching entries, the best one's surroundings."""

    found: frozenset[int] = frozenset()
    matches: int = 0
    snippet: str = ""


def look_at(pieces: Iterable[bytes], wanted: Sequence[Needle], sure: frozenset[int]) -> Look:
    """Look for `wanted` in `pieces` of whole lines, in each from the end to the beginning.

    Ends after the piece in which something was found, once all that are not `sure` (known to
    occur) were. The snippet is of the entry with most of the needles; of those with as many the
    first that is come to.
    """
    sieve = _Sieve(wanted, sure)
    found: set[int] = set()
    matches, most, best = 0, 0, ("", 0)
    for data in pieces:
        for line in sieve.likely_lines(data):
            text = _text(line)
            places = _places(fold(text), wanted)
            found |= places.keys()
            matches += bool(places)
            if len(places) > most:
                most, best = len(places), (text, min(places.values()))
            if matches >= MOST_MATCHES and len(found | sure) == len(wanted):
                break
        if matches and len(found | sure) == len(wanted):
            break
    return Look(frozenset(found), matches, _snippet(*best))


class _Sieve:
    """Tells by the bytes alone which lines may hold something wanted.

    A word may be spelt with accents, as an escape, or in another script; lines that hold such
    letters may hold anything.
    """

    def __init__(self, wanted: Sequence[Needle], sure: frozenset[int]) -> None:
        self._raw = tuple(needle.raw for needle in wanted)
        self._unsure = tuple(raw for number, raw in enumerate(self._raw) if number not in sure)
        self._is_ascii = all(map(bytes.isascii, self._raw))

    def likely_lines(self, data: bytes) -> Iterator[bytes]:
        """The lines of `data` to read, the last first; none where all that is unsure is absent."""
        lowered = data.lower()
        may_be_odd = self._may_be_odd(data)
        if self._unsure and not may_be_odd and not _has_one(lowered, self._unsure):
            return
        lines = zip(data.split(b"\n")[::-1], lowered.split(b"\n")[::-1], strict=True)
        for line, low in lines:
            if _has_one(low, self._raw) or (may_be_odd and self._may_be_odd(line)):
                yield line

    def _may_be_odd(self, data: bytes) -> bool:
        has_accents = not data.isascii() and bool(data.translate(None, _NOT_ACCENTED))
        if has_accents or not (self._is_ascii or data.isascii()):
            return True
        return b"\\u" in data and (not self._is_ascii or _ESCAPED.search(data) is not None)


def _has_one(data: bytes, wanted: Sequence[bytes]) -> bool:
    return any(map(data.__contains__, wanted))


def _text(line: bytes) -> str:
    entry = load_record(line)
    return record_text(entry) if entry is not None else ""


def _places(folded: str, wanted: Sequence[Needle]) -> dict[int, int]:
    """Where in `folded` each needle occurs first, by its number."""
    places: dict[int, int] = {}
    for number, needle in enumerate(wanted):
        start = folded.find(needle.text)
        match = needle.pattern.search(folded, start) if start >= 0 else None
        if match is not None:
            places[number] = match.start()
    return places


def _snippet(text: str, place: int) -> str:
    """One line of `text` around `place`, which counts the characters of the folded text."""
    at = place if text.isascii() else _unfolded(text, place)
    start = max(at - _CHARS_BEFORE, 0)
    if start:
        start = next((i + 1 for i in range(start, at) if text[i].isspace()), start)
    shown = one_line(text[start:], _CHARS_SHOWN)
    return f"…{shown}" if start and shown else shown


def _unfolded(text: str, place: int) -> int:
    """The character of `text` that became the one at `place` of the folded text."""
    length = 0
    for at, character in enumerate(text):
        length += len(fold(character))
        if length > place:
            return at
    return 0
