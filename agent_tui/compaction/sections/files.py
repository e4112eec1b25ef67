"""The files as a summary shows them: whole, or by their edited places."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agent_tui.compaction.sections.file_states import (
    SCRATCH,
    FileState,
    ReadFile,
    complete_file,
    is_of_the_work,
)
from agent_tui.tokens import TokenCounter

WHOLE_TOKENS, WHOLE_SHARE = 6_500, 1 / 3
"""A changed file larger than both is shown only by its edited places.

The share is of the space for files.
"""

PLACES_TOKENS = 3_000
"""Limit for the edited places of one file; the newest are shown."""

_COMMITTED_TOKENS = 1_500
"""Limit for an edited file whose changes are committed."""

_FILES_NOW = re.compile(r"^<files-now>\n(.*?)\n</files-now>", re.DOTALL | re.MULTILINE)
_FILE_HEAD = re.compile(r"^### (.+?) \((?:changed|read \d+ times);", re.MULTILINE)
_CHANGED_OUTSIDE = "\n(changed outside since you last saw it)"
_WRITTEN_BELOW = "changed; whole in the newest messages"
_AROUND_LINES = (0, 4, 12)
"""Lines shown before and after an edit, depending on the space."""

_COMMAND_CHARS = 90
_LEAST_TOKENS = 60
_LEAST_BEGINNING_TOKENS = 250
_LEAST_PLACE_LINES = 2
_BEGINNING_LINES = 15
"""Of a file to which text is appended, so many have the imports."""

_CLOSING_CHARS = 3
"""The longest line that only closes blocks: ``end``, ``});``."""

_PLACE_TOKENS = 8
"""Tokens of the line above an edited place."""

_OFTEN_READ = 2
_MOST_COMPARED = 20
"""So many of the files touched last are compared with the disk."""


@dataclass(frozen=True, slots=True)
class ShownFile:
    """One file as the context shows it; `is_whole` if all of it is shown as it is."""

    path: str
    text: str
    is_whole: bool

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
) -> list[ShownFile]:
    """The files to show: changed and often read ones, and those that read differently on the disk.

    The most recently touched come first; those whose changes are committed come last.

    A changed file is shown whole up to `WHOLE_TOKENS` or `WHOLE_SHARE` of the space, else by its
    edited places with the lines around them. One that was written whole and is not committed may
    take all the space; an edited one whose changes are committed shows only some of its places.
    Files that do not fit are only in the lists of paths. Temporary files are not shown.

    Args:
        files: The files in the log, the most recently touched first.
        room_tokens: Limit of all together.
        counter: Counts their tokens.
        on_disk: Reads a file of the working folder, which is shown as it is there; None if files
            are unavailable.
        verbatim: Entries that stay unchanged; a file that one of them wrote is visible there.
    """
    for file in files[:_MOST_COMPARED]:
        complete_file(file, on_disk)
    at_work = [
        file
        for file in files
        if (file.is_changed or file.reads >= _OFTEN_READ or file.is_changed_outside)
        and not file.path.startswith(SCRATCH)
        and (file.is_changed or is_of_the_work(file.path))
    ]
    settled = [file for file in at_work if file.is_changed and file.is_committed]
    current = [file for file in at_work if file not in settled]
    turns = [(file, False) for file in current]
    turns += [(file, True) for file in current if file.is_changed and not file.edits]
    turns += [(file, False) for file in settled]
    shown: dict[str, ShownFile] = {}
    whole = max(WHOLE_TOKENS, int(room_tokens * WHOLE_SHARE))
    for file, is_beginning in turns:
        if room_tokens < _LEAST_TOKENS:
            break
        if file.path in shown or (is_beginning and room_tokens < _LEAST_BEGINNING_TOKENS):
            continue
        complete_file(file, on_disk)
        if file.written_at in verbatim and not file.is_changed_outside:
            head = f"### {file.path} ({_WRITTEN_BELOW})"
            shown[file.path] = ShownFile(file.path, head, is_whole=True)
            continue
        limit = min(room_tokens, _limit(file, room_tokens, whole))
        for text, is_whole in _forms(file, limit, counter, is_beginning=is_beginning):
            tokens = counter.count_text(text) + 4
            if tokens <= room_tokens:
                shown[file.path] = ShownFile(file.path, text, is_whole)
                room_tokens -= tokens
                break
    return list(shown.values())


def _limit(file: FileState, room_tokens: int, whole: int) -> int:
    """Most tokens of `file`: more if it is at work and has no edited places, less if committed."""
    if file.is_committed and file.edits:
        return _COMMITTED_TOKENS
    is_only_whole = file.is_changed and not file.is_committed and not file.edits
    return room_tokens if is_only_whole else whole


def paths_shown_in(summary: str) -> list[str]:
    """The files that `summary` shows in their state at that time."""
    block = _FILES_NOW.search(summary)
    return _FILE_HEAD.findall(block[1]) if block else []


def _forms(
    file: FileState, room: int, counter: TokenCounter, *, is_beginning: bool
) -> Iterable[tuple[str, bool]]:
    """Ways to show `file`, the most complete first."""
    note = f"\n({doubt})" if (doubt := file.doubt) else ""
    note += _CHANGED_OUTSIDE if file.is_changed_outside and not file.is_changed else ""
    what = "changed" if file.is_changed else f"read {file.reads} times"
    text = file.text
    if text and len(text) <= 8 * room and counter.count_text(text) <= room:
        part = "whole" if file.is_whole else "as far as read"
        yield f"### {file.path} ({what}; {part}){note}\n{text}", file.is_whole and not file.unseen
    if file.edits or is_beginning:
        part = "edited places" if file.edits else "the beginning"
        head = f"### {file.path} ({what}; {part}){note}"
        room = min(room, PLACES_TOKENS) - counter.count_text(head)
        places = _cut_places(file, room, counter)
        if places.count("\n") >= _LEAST_PLACE_LINES:
            yield f"{head}\n{places}", False


def _cut_places(file: FileState, room: int, counter: TokenCounter) -> str:
    """The lines of edits, newest first, then the lines around them, as many as fit.

    Without edits, the lines from the beginning. Of a committed file to which text is appended, such
    as one with tests, its last block and what precedes the first one.
    """
    wanted: list[set[int]] = [set() for _ in file.runs]
    found, arounds = list(_places_of_edits(file)), _AROUND_LINES
    if not file.edits:
        found = [(run, 0, len(lines)) for run, (_, lines) in enumerate(file.runs)]
    elif ends := _ends_if_appended(file, found):
        found, arounds = ends, _AROUND_LINES[:1]
    for around in arounds:
        for run, first, last in found:
            lines = file.runs[run][1]
            for at in range(max(first - around, 0), min(last + around + 1, len(lines))):
                if at in wanted[run]:
                    continue
                is_new_place = at - 1 not in wanted[run]
                room -= counter.count_text(lines[at]) + 1 + is_new_place * _PLACE_TOKENS
                if room < 0:
                    return _places(file, wanted)
                wanted[run].add(at)
    return _places(file, wanted)


def _places_of_edits(file: FileState) -> Iterator[tuple[int, int, int]]:
    """Run, first and last line of each edit whose new text is still there, newest first."""
    texts = ["\n".join(lines) for _, lines in file.runs]
    for new in reversed(file.edits):
        run = next((at for at, text in enumerate(texts) if new and new in text), None)
        if run is not None:
            first = texts[run].count("\n", 0, texts[run].find(new))
            yield run, first, first + new.count("\n")


def _ends_if_appended(
    file: FileState, edits: Sequence[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    """The last block of a committed file that ends with the newest edit, and its beginning.

    Both are given as `_places_of_edits` gives places; there are none for another file.
    """
    if not (file.is_whole and file.is_committed and edits):
        return []
    (_, lines), (_, first, last) = file.runs[0], edits[0]
    if any(len(line.strip()) > _CLOSING_CHARS for line in lines[last + 1 :]):
        return []
    depths = {at: _depth(lines[at]) for at in range(first, last + 1) if lines[at].strip()}
    opening = [
        at for at, below in pairwise(depths) if min(depths.values()) == depths[at] < depths[below]
    ]
    start = opening[-1] if opening else first
    while start > first and lines[start - 1].strip():
        start -= 1
    return [(0, start, len(lines) - 1), (0, 0, min(_BEGINNING_LINES, start) - 1)]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _places(file: FileState, wanted: Sequence[set[int]]) -> str:
    """The `wanted` lines of each run, each part below the number of its first line."""
    parts: list[str] = []
    for (start, lines), places in zip(file.runs, wanted, strict=True):
        previous = -2
        for at in sorted(places):
            if at != previous + 1:
                parts.append(f"@@ line {start + at}" if start else "@@")
            parts.append(lines[at])
            previous = at
    return "\n".join(parts)
