"""The chosen pieces as they enter the summary: files as they are now, no line twice."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import Match, SequenceMatcher

from agent_tui.compaction.curation.answer import Pick
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.sections.files import (
    FileState,
    ReadFile,
    ShownFile,
    complete_file,
)
from agent_tui.compaction.transcript import escape_tags
from agent_tui.omissions import recall_mark
from agent_tui.tokens import TokenCounter

_HEAD_TOKENS = 24
_LEAST_LINES = 3
_MOST_NAMED = 8
"""Most choices named of those that did not fit."""

_TELLING_CHARS = 4
_LEAST_SHARED = 0.5
"""If a place shares a smaller part of its lines with the view, it is a different place."""

_MOST_GROWTH, _MOST_ADDED_LINES = 2, 40
"""If more lines than this were added between lines of a view, they are now two places."""

_NOW, _LAST_KNOWN = "as it is now", "as last seen or edited"
_UNSEEN = "as last seen or edited; a command has changed the file since"
_CURRENT = frozenset({_NOW, _LAST_KNOWN, _UNSEEN})
_OLD = "as it was then; the file has changed since"
_OLD_OUTPUT = "as it was then; files have changed since, and their line numbers"
_EXCERPT = re.compile(
    r'<excerpt(?: of="(?P<label>[^"\n]*)")?(?: file="(?P<path>[^"\n]*)")?'
    r'(?: lines="(?P<first>\d{1,9})-\d+")?(?P<marks>[^>\n]*)>\n(?P<text>.*?)\n?</excerpt>',
    re.DOTALL,
)
_LASTING = ' kept="always"'
_BLOCK = re.compile(r"<kept>\n(.*?)\n?</kept>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Kept:
    """The block of chosen pieces.

    Args:
        text: The block; empty if nothing was chosen.
        paths: Files with parts in the block.
        count: Number of choices in the block.
        left_out: Number of choices that did not fit, or only in part.
    """

    text: str = ""
    paths: frozenset[str] = frozenset()
    count: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a piece or a file, from number `first` on (0 if unknown).

    Lines of a file are identified by its `path` alone. `state` says how a view differs from the
    file now; empty if the file is unchanged. `is_lasting`: the user keeps it through all
    compactions.
    """

    label: str
    path: str
    first: int
    lines: tuple[str, ...]
    state: str = ""
    is_lasting: bool = False

    @property
    def last(self) -> int:
        """Number of the last line."""
        return self.first + len(self.lines) - 1

    @property
    def text(self) -> str:
        """The excerpt as written in a summary."""
        source = ("file", self.path) if self.path else ("of", self.label)
        marks = f' {source[0]}="{_attribute(source[1])}"'
        marks += f' lines="{self.first}-{self.last}"' if self.first else ""
        marks += f' state="{self.state}"' if self.state else ""
        marks += _LASTING if self.is_lasting else ""
        body = escape_tags("\n".join(self.lines))
        return f"<excerpt{marks}>\n{body}\n</excerpt>"


def keep_excerpts(
    picks: Sequence[Pick],
    *,
    staying: frozenset[str],
    files: Sequence[FileState],
    on_disk: ReadFile | None,
    room_tokens: int,
    counter: TokenCounter,
    shown: Sequence[ShownFile] = (),
) -> Kept:
    """The chosen pieces as a block of the summary, in the order of the conversation.

    Args:
        picks: The most needed first; the last are dropped if space runs out.
        staying: Entries that stay unchanged in the context.
        files: The known current state of the files.
        on_disk: Reads a file; None if files are unavailable.
        room_tokens: Limit of the block.
        counter: Counts its tokens.
        shown: Files that the summary shows anyway; their lines are not repeated unless the pick is
            lasting.
    """
    states = {name: file for file in files for name in (*file.old_paths, file.path)}
    filler = _Filler(states, on_disk, room_tokens, counter, shown)
    for pick in picks:
        if pick.is_lasting or pick.piece.entry_id not in staying:
            filler.add(pick)
    excerpts = filler.excerpts()
    missing = filler.missing
    if not excerpts:
        return Kept(left_out=len(missing))
    lines = [excerpt.text for excerpt in excerpts]
    if missing:
        more = f", and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        names = escape_tags("; ".join(missing[:_MOST_NAMED]))
        lines.append(f"(There was no room for all of this: {names}{more}.)")
    body = "\n".join(lines)
    paths = frozenset(excerpt.path for excerpt in excerpts if excerpt.path)
    return Kept(f"<kept>\n{body}\n</kept>", paths, filler.count, len(missing))


def excerpts_in(text: str) -> Iterator[Excerpt]:
    """The excerpts in `text`."""
    for found in _EXCERPT.finditer(text):
        lines = tuple(found["text"].split("\n"))
        first, path = int(found["first"] or 0), found["path"] or ""
        is_lasting = _LASTING in found["marks"]
        label = found["label"] or f"file {path}"
        yield Excerpt(label, path, first, lines, is_lasting=is_lasting)


def earlier_pieces(summary: str, counter: TokenCounter) -> tuple[Piece, ...]:
    """The excerpts in `summary`, as pieces that can be chosen again."""
    block = _BLOCK.search(summary)
    return tuple(
        Piece(
            number=0,
            entry_id="",
            kind="kept",
            label=excerpt.label,
            lines=excerpt.lines,
            first=max(excerpt.first, 1),
            tokens=counter.count_text("\n".join(excerpt.lines)),
            path=excerpt.path,
            remark="kept by the last compaction",
            is_lasting=excerpt.is_lasting,
        )
        for excerpt in excerpts_in(block[1] if block else "")
    )


class _Filler:
    """Adds picks while there is space."""

    def __init__(
        self,
        states: Mapping[str, FileState],
        on_disk: ReadFile | None,
        room: int,
        counter: TokenCounter,
        shown: Sequence[ShownFile],
    ) -> None:
        self._shown = {file.path: file for file in shown}
        self._states = states
        self._on_disk = on_disk
        self._room = room
        self._counter = counter
        self._completed: set[str] = set()
        self._files: dict[str, dict[int, str]] = {}
        self._file_states: dict[str, str] = {}
        self._labels: dict[str, tuple[int, str]] = {}
        self._lasting: set[str] = set()
        self._others: list[tuple[int, Excerpt]] = []
        self.count = 0
        self.missing: list[str] = []

    def add(self, pick: Pick) -> None:
        """Add all of `pick`, or as much of it as fits."""
        parts = list(self._parts(pick))
        sizes = [self._add(pick, excerpt) for excerpt in parts]
        self.count += all(sizes)
        if any(size < len(part.lines) for size, part in zip(sizes, parts, strict=True)):
            spans = ", ".join(f"{a}-{b}" for a, b in pick.spans)
            recall = recall_mark(pick.piece.entry_id) if pick.piece.entry_id else ""
            part = "the rest of " if any(sizes) else ""
            self.missing.append(f"{part}{pick.piece.source} {spans} {recall}".strip())

    def excerpts(self) -> list[Excerpt]:
        """The excerpts added so far, in the order of the conversation."""
        placed = [*self._others]
        for path, lines in self._files.items():
            number, label = self._labels[path]
            is_lasting = path in self._lasting
            made = Excerpt(label, path, 0, (), self._file_states[path], is_lasting)
            placed += [(number, run) for run in _runs(made, lines)]
        return [excerpt for _, excerpt in sorted(placed, key=lambda one: one[0])]

    def _add(self, pick: Pick, excerpt: Excerpt) -> int:
        """Returns how many lines of `excerpt` are now in the block or the files shown."""
        shown = self._shown.get(excerpt.path) if excerpt.state in _CURRENT else None
        if shown is not None and not pick.is_lasting and shown.shows(excerpt.lines):
            return len(excerpt.lines)
        known = self._files.get(excerpt.path, {}) if excerpt.state in _CURRENT else {}
        fresh = 0 if known else _HEAD_TOKENS
        count = 0
        for at, line in enumerate(excerpt.lines):
            is_there = known.get(excerpt.first + at) == line
            fresh += 0 if is_there else self._counter.count_text(line) + 1
            if fresh > self._room:
                break
            count = at + 1
        if count < len(excerpt.lines) and count < _LEAST_LINES:
            return 0
        taken = excerpt.lines[:count]
        self._room -= fresh
        if excerpt.state in _CURRENT:
            self._file_states[excerpt.path] = excerpt.state
            lines = self._files.setdefault(excerpt.path, {})
            lines.update({excerpt.first + at: line for at, line in enumerate(taken)})
            self._labels[excerpt.path] = max(
                self._labels.get(excerpt.path, (0, "")), (pick.piece.number, excerpt.label)
            )
            self._lasting |= {excerpt.path} if pick.is_lasting else set()
        else:
            part = replace(excerpt, lines=taken, is_lasting=pick.is_lasting)
            if all(part != replace(other, is_lasting=pick.is_lasting) for _, other in self._others):
                self._others.append((pick.piece.number, part))
        return count

    def _parts(self, pick: Pick) -> Iterator[Excerpt]:
        piece = pick.piece
        last = piece.last
        for a, b in pick.spans or ((piece.first, last),):
            lines = piece.lines[a - piece.first : b - piece.first + 1]
            if not piece.path:
                state = _OLD_OUTPUT if piece.is_outdated else ""
                yield Excerpt(piece.source, "", a if pick.spans else 0, lines, state)
                continue
            file = self._states.get(piece.path)
            path = file.path if file is not None else piece.path
            places = lines_now(piece, a, b, self._runs_of(path))
            first = 0 if piece.is_change and not piece.is_whole else a  # the place of an edit
            is_unseen = file is not None and bool(file.unseen)
            state = _UNSEEN if is_unseen else _NOW if self._on_disk else _LAST_KNOWN
            for place in places:
                yield Excerpt(f"file {path}", path, *place, state)
            if not places:
                is_old = piece.is_outdated or is_unseen or (file and file.is_changed_outside)
                state = _OLD if is_old else ""
                yield Excerpt(piece.source, path, first, lines, state)

    def _runs_of(self, path: str) -> Sequence[tuple[int, Sequence[str]]]:
        file = self._states.get(path)
        if file is None:
            return ()
        if path not in self._completed:
            self._completed.add(path)
            complete_file(file, self._on_disk)
        return file.runs


def lines_now(
    piece: Piece, first: int, last: int, known: Sequence[tuple[int, Sequence[str]]]
) -> list[tuple[int, tuple[str, ...]]]:
    """Lines `first` to `last` of a view of a file, as they are in the file now, with their numbers.

    Lines that were only indented or wrapped since count as the same.

    Args:
        piece: The view.
        first: Number of a line in it.
        last: Number of the last line.
        known: The known runs of the file now: number of the first line, and lines.

    Returns: Several runs if much was inserted between the lines; none if they are not found.
    """
    a, b = first - piece.first, last - piece.first + 1
    wanted, with_next = list(piece.lines[a:b]), list(piece.lines[a : b + 1])
    for start, lines in known:
        if start and (at := _find(with_next, lines, near=first - start)) >= 0:
            return [(start + at, tuple(wanted))]
    viewed = [line.strip() for line in piece.lines]
    for start, lines in known:
        if not start:
            continue
        now = [line.strip() for line in lines]
        matcher = SequenceMatcher(_says_little, viewed, now, autojunk=False)
        blocks = [block for block in matcher.get_matching_blocks() if block.size]
        same = [
            (max(m.a, a) + m.b - m.a, min(m.a + m.size, b) + m.b - m.a)
            for m in blocks
            if m.a < b and m.a + m.size > a
        ]
        low, high = _map_line(a, blocks), _map_line(b - 1, blocks, is_end=True) + 1
        behind = _map_line(b, blocks) if b < len(viewed) else high
        if high <= behind <= high + _MOST_ADDED_LINES:
            high = behind  # including lines inserted after them
        is_one = low < high <= low + len(wanted) * _MOST_GROWTH + _MOST_ADDED_LINES
        shared = sum(end - at for at, end in same) / len(wanted)
        if is_one:  # the view tells the place even if most of its lines were rewritten
            shared = max(shared, sum(m.size for m in blocks) / len(viewed))
        places = [(low, high)] if is_one else _places([(low, low), *same, (high, high)])
        if places and shared >= _LEAST_SHARED:
            return [(start + at, tuple(lines[at:end])) for at, end in places]
    return []


def _says_little(line: str) -> bool:
    """Whether `line` is alike everywhere ("", "}", "end"): it tells no place, and costs time."""
    return len(line) < _TELLING_CHARS


def _places(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge nearby `spans` in order; drop single lines, which prove nothing."""
    places: list[tuple[int, int]] = []
    for at, end in spans:
        if places and at - places[-1][1] <= _MOST_ADDED_LINES:
            places[-1] = (places[-1][0], max(end, places[-1][1]))
        else:
            places.append((at, end))
    large = [(at, end) for at, end in places if end - at >= _LEAST_LINES]
    return large or [(at, end) for at, end in places if end > at]


def _find(wanted: Sequence[str], lines: Sequence[str], near: int) -> int:
    """The index of `wanted` as a whole in `lines`, nearest to `near`; -1 if it is not there."""
    count = len(wanted)
    if lines[max(near, 0) : max(near, 0) + count] == wanted:
        return max(near, 0)
    places = [
        at
        for at in range(len(lines) - count + 1)
        if lines[at] == wanted[0] and list(lines[at : at + count]) == wanted
    ]
    return min(places, key=lambda at: abs(at - near), default=-1)


def _map_line(at: int, blocks: Sequence[Match], *, is_end: bool = False) -> int:
    """The present index of line `at` of a view; for a deleted line, the end of its gap."""
    before = -1
    for block in blocks:
        if block.a <= at < block.a + block.size:
            return block.b + at - block.a
        if block.a > at:
            return block.b - 1 if is_end else before + 1
        before = block.b + block.size - 1
    return before if is_end else before + 1


def _runs(made: Excerpt, lines: Mapping[int, str]) -> Iterator[Excerpt]:
    """The `lines` of a file as excerpts like `made`, one for each run without a gap."""
    run: list[str] = []
    first = previous = 0
    for number in sorted(lines):
        if run and number != previous + 1:
            yield replace(made, first=first, lines=tuple(run))
            run = []
        first = first if run else number
        run.append(lines[number])
        previous = number
    if run:
        yield replace(made, first=first, lines=tuple(run))


def _attribute(text: str) -> str:
    return text.replace('"', "'").replace("\n", " ").replace(">", "›")
