"""Passages of lines that stand in the context already, and where."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from agent_tui.compaction.sections.file_views import line_number, plain_lines
from agent_tui.compaction.sections.files import ShownFile

EDITED = "(lines edited since)"
STANDS = "(lines{numbers} shown in {places})"
_SAME = "(as in {places})"
_Passage: TypeAlias = tuple[str, ...]
_PASSAGE_LINES = 5
"""Fewer lines can be equal by chance."""

_LEAST_RUN_LINES = 3
"""Of lines that a file is shown with, fewer take no more space than a mark."""

_NEARLY = 0.2
"""A text of whose lines no larger part is new stands elsewhere."""

_CLOSING_CHARS = 3
"""A line without more characters, such as ``end`` or ``});``, says nothing alone."""


class Passages:
    """The passages of texts, each text split once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Passage, ...]] = {}

    def of(self, text: str) -> tuple[_Passage, ...]:
        """Each run of `_PASSAGE_LINES` lines of `text` without line numbers, by its first line."""
        if (known := self._known.get(text)) is None:
            lines = [plain for _, plain in plain_lines(text)]
            starts = range(len(lines) - _PASSAGE_LINES + 1)
            known = tuple(tuple(lines[at : at + _PASSAGE_LINES]) for at in starts)
            self._known[text] = known
        return known


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands: in a message, or in the file at `path` in the summary.

    What stands there is a view of one of `files`, if there are any.
    """

    name: str
    path: str = ""
    files: frozenset[str] = frozenset()


GONE = Place(EDITED)
"""The place of lines that were edited since."""

NOWHERE: Mapping[str, Place] = {}


class KnownPassages:
    """The passages already in the context, and where."""

    def __init__(self, files: Iterable[ShownFile], passages: Passages) -> None:
        self.passages = passages
        self._places: dict[_Passage, dict[frozenset[str], Place]] = {}
        for file in files:
            self.add(file.text, Place(f"{file.path} above", file.path, frozenset((file.path,))))

    def add(self, text: str, place: Place) -> None:
        """Add `text`, which stands at `place`."""
        for passage in self.passages.of(text):
            self._places.setdefault(passage, {}).setdefault(place.files, place)

    def without(
        self,
        text: str,
        mark: str = STANDS,
        lines: Mapping[str, Place] = NOWHERE,
        files: Set[str] = frozenset(),
    ) -> tuple[str, frozenset[str]]:
        """`text` without what stands elsewhere, marked, and the files that have it.

        Args:
            text: The text.
            mark: What replaces a run of lines, with the `places` that have them.
            lines: Where single lines stand; `GONE` for those that stand nowhere.
            files: Those that `text` may be a view of: lines of other files stay, even if equal.
        """
        known = {
            at: place
            for at, forms in enumerate(plain_lines(text) if lines else ())
            if (place := lines.get(forms[1]) or lines.get(forms[0]))
        }
        for at, passage in enumerate(self.passages.of(text)):
            places = self._places.get(passage, {})
            if found := [own for own in places if not files or not files.isdisjoint(own)]:
                place = places[found[0]]
                known.update((at + line, place) for line in range(len(passage)))
        if not known:
            return text, frozenset()
        parts: list[str] = []
        paths: set[str] = set()
        for is_known, run in _runs_of_known(text.split("\n"), known):
            places = dict.fromkeys(known[at] for at, _ in run if at in known)
            if not is_known or (GONE not in places and len(run) < _LEAST_RUN_LINES):
                parts += [line for _, line in run]
                continue
            names = [place.name for place in places if place != GONE]
            numbers = _numbers_of([line for _, line in run])
            stands = mark.format(numbers=numbers, places=", ".join(names))
            parts.append(stands if names else EDITED)
            paths.update(place.path for place in places if place.path)
        return "\n".join(parts), frozenset(paths)

    def line_for(self, text: str) -> tuple[str, frozenset[str]]:
        """The line for a `text` that stands elsewhere, all or nearly, and its files; else empty."""
        left, paths = self.without(text, _SAME)
        lines = left.split("\n")
        marks = [line for line in lines if line.startswith(_SAME.partition("{")[0])]
        own = sum(map(says_something, lines)) - len(marks)
        if not marks or own > _NEARLY * sum(map(says_something, text.split("\n"))):
            return "", frozenset()
        return " ".join(dict.fromkeys(marks)).replace("(", "(nearly " if own else "(", 1), paths


def without_repeats(texts: Sequence[tuple[str, str, bool]]) -> list[str]:
    """The `texts`, oldest first, without passages that a later one has: its name stands there.

    Each has its name (empty if nothing may refer to it) and whether it must stay whole.
    """
    said = KnownPassages((), Passages())
    left: list[str] = []
    for name, text, is_whole in reversed(texts):
        left.append(text if is_whole else said.without(text)[0])
        said.add(text if name else "", Place(name))
    return left[::-1]


def _numbers_of(lines: Sequence[str]) -> str:
    """The numbers of the first and the last of `lines`, if a view has them; else empty."""
    first, last = (line_number(line) for line in (lines[0], lines[-1]))
    return f" {first}-{last}" if first and last else ""


def _runs_of_known(
    lines: Sequence[str], known: Mapping[int, Place]
) -> Iterator[tuple[bool, list[tuple[int, str]]]]:
    """Runs of `lines` by whether they are `known`, with what says nothing between two of those."""
    between: list[tuple[int, str]] = []
    runs: list[tuple[bool, list[tuple[int, str]]]] = []
    for is_known, group in groupby(enumerate(lines), lambda line: line[0] in known):
        run = list(group)
        is_gap = not any(says_something(plain_lines(line)[0][1]) for _, line in run)
        if is_known and runs and between:
            runs[-1][1].extend([*between, *run])
            between = []
        elif not is_known and is_gap and runs:
            between = run
        else:
            runs.append((is_known, run))
    yield from runs
    if between:
        yield False, between


def says_something(line: str) -> bool:
    """Whether `line` is neither blank nor only closes a block."""
    return len(line.strip()) > _CLOSING_CHARS
