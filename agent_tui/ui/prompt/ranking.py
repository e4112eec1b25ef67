"""Ranks names and paths by a few typed letters. Pure; ranks long lists in slices."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice, pairwise

from agent_tui.text_search import lower_in_place
from agent_tui.tools.files.folder_entries import REBUILT_FOLDERS

_SLICE = 2_000
"""Paths looked at between two questions whether the answer is still wanted."""
_MOST_SCATTERED = 4_000
"""Most paths with scattered matches that are ranked."""
_FEW = 3
"""If there are no more matches than this, typing errors are considered."""
_MIN_SIMILARITY = 75

IsWanted = Callable[[], bool]
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
    scattered = _spread_letters(wanted, letters)
    return FuzzyMatch(_score(scattered, letters), scattered) if scattered else None


def _best_place(wanted: str, letters: str) -> int:
    """Where `wanted` occurs as a whole, preferably at a word's beginning; -1 if nowhere."""
    first = place = letters.find(wanted)
    while place > 0 and not _begins_word(letters, place):
        place = letters.find(wanted, place + 1)
    return first if place < 0 else place


def _spread_letters(wanted: str, letters: str) -> tuple[int, ...]:
    """The shortest stretch that ends where all letters have first occurred."""
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


@dataclass(slots=True)
class PathList:
    """Paths as they are, and each folded with a slash before it, in the same order.

    It only grows, so that one thread may read what another one adds to.
    """

    paths: list[str] = field(default_factory=list[str])
    folded: list[str] = field(default_factory=list[str])

    def add(self, path: str) -> None:
        """Add one path; a folder ends with a slash."""
        self.paths.append(path)
        self.folded.append("/" + fold_path(path))


@dataclass(slots=True)
class PathCatalog:
    """The files and folders of a project.

    Attributes:
        visible: The usual ones.
        rebuilt: Those of folders that builds and package managers fill.
        hidden: Those with a name that begins with a dot.
    """

    visible: PathList = field(default_factory=PathList)
    rebuilt: PathList = field(default_factory=PathList)
    hidden: PathList = field(default_factory=PathList)

    @classmethod
    def of(cls, files: Iterable[str]) -> "PathCatalog":
        """The catalog of `files` and the folders they are in."""
        catalog = cls()
        for _ in catalog.fill(files):
            pass
        return catalog

    def fill(self, files: Iterable[str]) -> Iterator[None]:
        """Add `files`, and each folder before the first file in it; a pause after each slice."""
        known = {""}
        for number, file in enumerate(files, start=1):
            if is_writable(file):
                for path in _with_new_folders(file, known):
                    self._list_for(path).add(path)
            if number % _SLICE == 0:
                yield

    def _list_for(self, path: str) -> PathList:
        if path.startswith(".") or "/." in path:
            return self.hidden
        return self.visible if REBUILT_FOLDERS.isdisjoint(path.split("/")) else self.rebuilt


def is_writable(path: str) -> bool:
    """Whether a user can write `path` in a prompt: it is text without quotes and controls."""
    return path.isprintable() and '"' not in path


def fold_path(text: str) -> str:
    """`text` for comparing: small letters, composed ones as one (macOS keeps them apart)."""
    small = text.lower()
    return small if small.isascii() else unicodedata.normalize("NFC", small)


def rank_paths(
    catalog: PathCatalog, typed: str, limit: int, is_wanted: IsWanted = lambda: True
) -> tuple[str, ...]:
    """At most `limit` paths that fit `typed`, best first; the topmost ones if nothing is typed.

    A name that begins so comes before a folder that does, that before what has it elsewhere,
    that before letters with others between, and that before what a typing error may have meant
    (rapidfuzz's partial ratio). In each, shorter paths come first. Hidden ones are there only
    for a `typed` that asks for them with a dot at the beginning of a name. What builds and
    package managers fill comes last.
    """
    wanted = fold_path(typed)
    asks_for_hidden = wanted.startswith(".") or "/." in wanted
    found: dict[str, None] = {}
    usual = (catalog.visible, catalog.rebuilt)
    lists = (catalog.hidden, *usual) if asks_for_hidden else usual
    for paths in lists[:1] if wanted == "." else lists:
        for stage in (_beginning, _containing, _with_gaps, _similar):
            if len(found) >= limit or not is_wanted():
                break
            if stage is _similar and len(found) > _FEW:
                break
            size = len(paths.folded)  # the list may grow meanwhile
            best = stage(paths.folded, size, wanted, limit, is_wanted)
            found.update(dict.fromkeys(paths.paths[index] for index in best))
    return tuple(islice(found, limit))


def _with_new_folders(file: str, known: set[str]) -> Iterator[str]:
    folder = file.rpartition("/")[0]
    if folder not in known:
        parts = folder.split("/")
        for depth in range(1, len(parts) + 1):
            above = "/".join(parts[:depth])
            if above not in known:
                known.add(above)
                yield above + "/"
    yield file


def _beginning(
    folded: Sequence[str], size: int, wanted: str, limit: int, _is_wanted: IsWanted
) -> list[int]:
    if not wanted:
        return _topmost(folded, size, limit)
    start = "/" + wanted.lstrip("/")
    hits = [index for index in range(size) if start in folded[index]]

    def rank(index: int) -> tuple[bool, int, str]:
        path = folded[index]
        return not path.startswith(start, _name_start(path)), len(path), path

    return nsmallest(limit, hits, key=rank)


def _topmost(folded: Sequence[str], size: int, limit: int) -> list[int]:
    """The paths of the fewest folders, each folder's in order; three levels are looked at."""
    found: list[int] = []
    for depth in range(3):
        if len(found) < limit:
            level = [i for i in range(size) if folded[i].count("/", 1, -1) == depth]
            found += sorted(level, key=folded.__getitem__)
    return found[:limit]


def _containing(
    folded: Sequence[str], size: int, wanted: str, limit: int, _is_wanted: IsWanted
) -> list[int]:
    hits = [index for index in range(size) if wanted in folded[index]]

    def rank(index: int) -> tuple[bool, int, str]:
        path = folded[index]
        return path.find(wanted, _name_start(path)) < 0, len(path), path

    return nsmallest(limit, hits, key=rank)


def _with_gaps(
    folded: Sequence[str], size: int, wanted: str, limit: int, is_wanted: IsWanted
) -> list[int]:
    if len(wanted) < 2:
        return []
    # Each class leaves out the letter that comes next, so nothing is ever tried twice.
    pattern = "".join(f"[^{re.escape(letter)}]*+{re.escape(letter)}" for letter in wanted)
    has_letters = re.compile(pattern, re.DOTALL).match
    hits: list[int] = []
    for first in range(0, size, _SLICE):
        if len(hits) >= _MOST_SCATTERED or not is_wanted():
            break
        hits += [i for i in range(first, min(first + _SLICE, size)) if has_letters(folded[i])]

    def rank(index: int) -> tuple[float, int]:
        match = fuzzy_match(wanted, folded[index])
        return (-match.score if match else 0.0, len(folded[index]))

    return nsmallest(limit, hits, key=rank)


def _similar(
    folded: Sequence[str], size: int, wanted: str, limit: int, is_wanted: IsWanted
) -> list[int]:
    if len(wanted) < 3:
        return []
    from rapidfuzz import fuzz, process  # 20 ms to import, and only needed here

    close: list[tuple[float, int]] = []
    for first in range(0, size, _SLICE):  # one call lets no other thread work before it ends
        if not is_wanted():
            break
        part = folded[first : min(first + _SLICE, size)]
        best = process.extract(
            wanted, part, scorer=fuzz.partial_ratio, limit=limit, score_cutoff=_MIN_SIMILARITY
        )
        close += [(-score, first + index) for _, score, index in best]
    return [index for _, index in nsmallest(limit, close)]


def _name_start(path: str) -> int:
    """The index of the slash before the last name; a folder ends with another slash."""
    return path.rfind("/", 0, -1)
