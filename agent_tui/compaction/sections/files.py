"""The files as a summary shows them: whole, or by their edited places."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeAlias

from agent_tui.compaction.sections.file_states import (
    SCRATCH,
    FileState,
    ReadFile,
    complete_file,
    is_of_the_work,
)
from agent_tui.file_outline import block_around, largest_blocks, titles_above
from agent_tui.tokens import TokenCounter

_Range: TypeAlias = tuple[int, int, int]
"""Index of a run of a file, and of the first and last line in it."""

_NAME, _IS_DECISIVE = re.compile(r"[^\W\d]\w{3,}"), re.compile(r"_|\d|[a-z][A-Z]")
_FILE_NAME = re.compile(r"[\w.-]+\.\w+")
_MOST_NAMED_LINES, _MOST_BLOCK_LINES = 60, 80
_DATA_LINE_CHARS = 200
"""In data, such as JSON Lines or generated code, lines are longer on average."""

FILE_SHARE, LEAST_FILE_TOKENS = 1 / 4, 1_500
"""A maximum for one file: a share of the space for files, at least so many tokens."""

_WHOLE_PART, _SETTLED_PART = 1 / 2, 1 / 4
"""Of that maximum: a file up to this size is shown whole, and what settled files get."""

_FILES_NOW = re.compile(r"^<files-now>\n(.*?)\n</files-now>", re.DOTALL | re.MULTILINE)
_FILE_HEAD = re.compile(r"^### (.+?) \((?:changed|read \d+ times);", re.MULTILINE)
_CHANGED_OUTSIDE = "\n(changed outside since you last saw it)"
_WRITTEN_BELOW = "changed; whole in the newest messages"
_AROUND_LINES = (0, 4, 12)
"""Lines shown before and after an edit, depending on the space."""

_LEAST_TOKENS = 60
_LEAST_PLACE_LINES = 2
_BEGINNING_LINES = 15
"""Of a file without places, so many have the imports."""

_GAP_TOKENS, _PLACE_TOKENS, _INSIDE_TOKENS = 4, 8, 32
"""Tokens between two files, and of the line above a place, also of one inside of a block."""

_OFTEN_READ = 2
_MOST_COMPARED = 20
"""So many of the files touched last are compared with the disk."""


@dataclass(frozen=True, slots=True)
class ShownFile:
    """One file as the context shows it; `is_whole` if all of it is shown as it is.

    `spans` are the first and last numbers of the lines shown; empty if unknown.
    """

    path: str
    text: str
    is_whole: bool
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def where(self) -> str:
        """Where it is shown, in words for the answer to a call that names it."""
        if self.is_whole:
            return f"{self.path} is shown in the summary"
        lines = ", ".join(f"{first}-{last}" for first, last in sorted(self.spans))
        return f"{f'lines {lines}' if lines else 'parts'} are in the summary"

    def shows(self, lines: Iterable[str]) -> bool:
        """Whether each of `lines` is shown here."""
        return {line for line in lines if line.strip()} <= set(self.text.split("\n"))


def choose_files(
    files: Sequence[FileState],
    room_tokens: int,
    counter: TokenCounter,
    on_disk: ReadFile | None = None,
    *,
    verbatim: frozenset[str] = frozenset(),
    named: str = "",
) -> list[ShownFile]:
    """The files to show: changed ones, also outside, and `named` ones that were often read.

    The most recently touched come first, and those whose changes are committed last, with less.

    A small file is shown whole, and so is one that was written and not committed. The share of
    another has the parts that are `named`, edited or looked at, the newest first, with the lines
    around them. Files that do not fit are only in the lists of paths. Temporary ones are not shown.

    Args:
        files: The files in the log, the most recently touched first.
        room_tokens: Limit of all together.
        counter: Counts their tokens.
        on_disk: Reads a file of the working folder, which is shown as it is there; None if files
            are unavailable.
        verbatim: Entries that stay unchanged; a file that one of them wrote is visible there.
        named: The newest texts, which name files and parts of files.
    """
    for file in files[:_MOST_COMPARED]:
        complete_file(file, on_disk)
    words = filter(_IS_DECISIVE.search, _NAME.findall(named))
    names = frozenset((*words, *_FILE_NAME.findall(named)))
    at_work = [file for file in files if _is_needed(file, names)]
    shown: list[ShownFile] = []
    share = max(int(room_tokens * FILE_SHARE), min(LEAST_FILE_TOKENS, room_tokens // 2))
    for file in sorted(at_work, key=_is_settled):
        if room_tokens < _LEAST_TOKENS:
            break
        complete_file(file, on_disk)
        if file.written_at in verbatim and not file.is_changed_outside:
            head = f"### {file.path} ({_WRITTEN_BELOW})"
            shown.append(ShownFile(file.path, head, is_whole=True))
            continue
        is_written = file.written_at and not file.is_committed
        limit = int(share * (_SETTLED_PART if _is_settled(file) else 1))
        least = LEAST_FILE_TOKENS if file.written_at else LEAST_FILE_TOKENS * _WHOLE_PART
        whole = room_tokens if is_written else int(max(limit * _WHOLE_PART, least))
        if made := _show(file, min(limit, room_tokens), min(whole, room_tokens), counter, names):
            shown.append(made)
            room_tokens -= counter.count_text(made.text) + _GAP_TOKENS
    return shown


def _is_needed(file: FileState, names: Set[str]) -> bool:
    """Whether `file` was changed, here or outside, or read often and is among `names`."""
    if file.path.startswith(SCRATCH) or not (file.is_changed or is_of_the_work(file.path)):
        return False
    path = PurePosixPath(file.path)
    is_named = not names.isdisjoint((path.stem, path.name)) or any(_places_named(file, names))
    return file.is_changed or file.is_changed_outside or (file.reads >= _OFTEN_READ and is_named)


def _is_settled(file: FileState) -> bool:
    """Whether the changes of `file` are committed, or it is data that was only read."""
    is_data = len(file.text) > _DATA_LINE_CHARS * (file.text.count("\n") + 1)
    return file.is_committed if file.is_changed else is_data


def paths_shown_in(summary: str) -> list[str]:
    """The files that `summary` shows in their state at that time."""
    block = _FILES_NOW.search(summary)
    return _FILE_HEAD.findall(block[1]) if block else []


def _show(
    file: FileState, room: int, whole: int, counter: TokenCounter, names: Set[str]
) -> ShownFile | None:
    """`file` in `whole` tokens, else by its places in `room`; None if none fit."""
    note = f"\n({doubt})" if (doubt := file.doubt) else ""
    note += _CHANGED_OUTSIDE if file.is_changed_outside and not file.is_changed else ""
    what = "changed" if file.is_changed else f"read {file.reads} times"
    if (text := file.text) and len(text) <= 8 * whole:
        part = "whole" if file.is_whole else "as far as read"
        text = f"### {file.path} ({what}; {part}){note}\n{text}"
        if counter.count_text(text) + _GAP_TOKENS <= whole:
            spans = tuple((first, first + len(run) - 1) for first, run in file.runs if first)
            return ShownFile(file.path, text, file.is_whole and not file.unseen, spans)
    found = [*_places_named(file, names), *_places_of_work(file)]
    if not found and _is_settled(file):
        return None
    part = (
        ("edited or read" if file.is_changed else "last seen") + " places"
        if found
        else "the beginning"
    )
    head = f"### {file.path} ({what}; {part}){note}"
    room = left = room - counter.count_text(f"{head}\n")
    places = _places(file, wanted := _choose_lines(file, found, room, counter))
    while room > 0 and (tokens := counter.count_text(places)) > left:  # long titles above parts
        room = room * left // tokens
        places = _places(file, wanted := _choose_lines(file, found, room, counter))
    if places.count("\n") < _LEAST_PLACE_LINES:
        return None
    return ShownFile(file.path, f"{head}\n{places}", False, tuple(_spans(file, wanted)))


def _choose_lines(
    file: FileState, found: Sequence[_Range], room: int, counter: TokenCounter
) -> list[set[int]]:
    """The lines of the places `found`, then the blocks of code and lines around them, by run.

    A block is shown whole, and only if it fits; of the others, as many as fit. Without places, the
    lines are those of the beginning.
    """
    wanted: list[set[int]] = [set() for _ in file.runs]
    for run, places, is_block in _ranges(file, found):
        lines, more, tokens = file.runs[run][1], set[int](), 0
        for at in (at for at in places if at not in wanted[run]):
            is_new_place = at - 1 not in wanted[run] | more
            place = _INSIDE_TOKENS if lines[at][:1].isspace() else _PLACE_TOKENS
            tokens += counter.count_text(lines[at]) + 1 + is_new_place * place
            if tokens > room:
                break
            more.add(at)
        if tokens <= room or not is_block:
            wanted[run] |= more
            room -= tokens
        if room < 0:
            break
    return wanted


def _ranges(file: FileState, found: Sequence[_Range]) -> Iterator[tuple[int, range, bool]]:
    """The run and the lines of each part to show, the first the most needed; whether it is a block.

    A file of which nothing was `found` is shown by its beginning.
    """
    if not found and file.runs:
        yield 0, range(min(_BEGINNING_LINES, len(file.runs[0][1]))), False
    for around in _AROUND_LINES:
        for run, first, last in found:
            end = min(last + around + 1, len(file.runs[run][1]))
            yield run, range(max(first - around, 0), end), False
        for run, first, last in found if not around else ():
            lines = file.runs[run][1]
            start, end = block_around(file.path, lines, first, last, _MOST_BLOCK_LINES)
            yield run, range(start, end + 1), True


def _places_named(file: FileState, names: Set[str]) -> Iterator[_Range]:
    """The blocks of the file whose first line has one of `names`, unless they are long."""
    for run, (first, lines) in enumerate(file.runs):
        every = range(first, first + len(lines))
        for start, end, title in largest_blocks(file.path, first, lines, frozenset(every)):
            if end - start < _MOST_NAMED_LINES and not names.isdisjoint(_NAME.findall(title)):
                yield run, start - first, end - first


def _places_of_work(file: FileState) -> Iterator[_Range]:
    """Each place whose text is still there, the newest first."""
    texts = ["\n".join(lines) for _, lines in file.runs]
    for place in reversed(file.places):
        run = next((at for at, text in enumerate(texts) if place and place in text), None)
        if run is not None:
            first = texts[run].count("\n", 0, texts[run].find(place))
            yield run, first, first + place.count("\n")


def _places(file: FileState, wanted: Sequence[set[int]]) -> str:
    """The `wanted` lines of each run, each part below its first number and what it is inside of."""
    parts: list[str] = []
    for (start, lines), places in zip(file.runs, wanted, strict=True):
        previous, seen = -2, set(places)
        for at in sorted(places):
            if at != previous + 1:
                above = titles_above(file.path, lines, at, seen)
                place = f"@@ line {start + at}" if start else "@@"
                parts.append(f"{place}, in {above}" if above else place)
            parts.append(lines[at])
            previous = at
    return "\n".join(parts)


def _spans(file: FileState, wanted: Sequence[Set[int]]) -> Iterator[tuple[int, int]]:
    """The first and last numbers of the `wanted` lines that stand together, where known."""
    for (start, _), places in zip(file.runs, wanted, strict=True):
        firsts = sorted(start + at for at in places if at - 1 not in places)
        lasts = sorted(start + at for at in places if at + 1 not in places)
        yield from zip(firsts, lasts, strict=True) if start else ()
