"""The chosen pieces as they enter the summary: files as they are now, no line twice."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from agent_tui.compaction.curation.answer import Pick
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.curation.present_lines import (
    Run,
    end_of_block,
    end_of_paragraph,
    is_inside_block,
    lines_now,
    runs_of,
)
from agent_tui.compaction.sections.file_states import FileState, ReadFile, complete_file
from agent_tui.compaction.sections.file_views import plain_lines
from agent_tui.compaction.sections.files import ShownFile
from agent_tui.compaction.sections.task import is_document
from agent_tui.compaction.transcript import escape_tags
from agent_tui.file_outline import titles_above
from agent_tui.omissions import recall_mark
from agent_tui.tokens import TokenCounter

_HEAD_TOKENS = 24
_JOINED_LINES = 2
"""Two parts with no more lines between them are one."""

_LEAST_LINES = 3
_MOST_NAMED = 8
"""Most choices named of those that did not fit."""

_NOW, _LAST_KNOWN = "as it is now", "as last seen or edited"
_CURRENT = (_NOW, _LAST_KNOWN)
_UNPLACED = "as last edited; its place in the file is unknown"
_OLD = "as it was then; the file has changed since"
_OLD_OUTPUT = "as it was then; files have changed since, and their line numbers"
_EXCERPT = re.compile(
    r'<excerpt(?: file="(?P<path>[^"\n]*)")?(?: lines="(?P<first>\d{1,9})-\d+")?'
    r'(?: in="[^"\n]*")?'
    r'(?: state="[^"\n]*")?(?P<lasting> kept="always")?(?: of="(?P<label>[^\n]*)")?>\n'
    r"(?P<text>.*?)\n?</excerpt>",
    re.DOTALL,
)
"""What ``of`` names reaches to the end of the line, so that a command in it needs no escapes."""

_LASTING = ' kept="always"'
_QUOTE = "&quot;"
_GOES_ON = "\n[... the block goes on]"
_DIFF_FILE = re.compile(r"(?:diff --git a/.* b/|\+\+\+ b/)(?P<path>.+)")
_BLOCK = re.compile(r"<kept>\n(.*?)\n?</kept>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Kept:
    """The block of chosen pieces.

    Args:
        text: The block; empty if nothing was chosen.
        paths: Files with parts in the block.
        shown: Those of them whose parts are as the file is now.
        is_cut: There was no room for all that was chosen.
    """

    text: str = ""
    paths: frozenset[str] = frozenset()
    shown: tuple[ShownFile, ...] = ()
    is_cut: bool = False

    def shows(self, other: "Kept") -> bool:
        """Whether each line of a file that `other` shows is here, too."""
        files = {file.path: file for file in self.shown}
        return all(
            file.path in files and files[file.path].shows(file.text.split("\n"))
            for file in other.shown
        )


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a piece or a file, from number `first` on (0 if unknown).

    Lines of a file are identified by its `path` alone. `state` says how a view differs from the
    file now, and what may have changed that since; empty if the file is unchanged.
    `is_lasting`: the user keeps it through all compactions. `inside`: the beginnings of the blocks
    of code that it begins in. `goes_on`: its last block goes on behind it.
    """

    label: str
    path: str
    first: int
    lines: tuple[str, ...]
    state: str = ""
    is_lasting: bool = False
    inside: str = ""
    goes_on: bool = False

    @property
    def last(self) -> int:
        """Number of the last line."""
        return self.first + len(self.lines) - 1

    @property
    def text(self) -> str:
        """The excerpt as written in a summary."""
        marks = f' file="{_escape_quotes(self.path)}"' if self.path else ""
        marks += f' lines="{self.first}-{self.last}"' if self.first else ""
        marks += f' in="{_escape_quotes(escape_tags(self.inside))}"' if self.inside else ""
        marks += f' state="{_escape_quotes(self.state)}"' if self.state else ""
        marks += _LASTING if self.is_lasting else ""
        label = self.label.replace("\n", " ")
        marks += "" if self.path else f' of="{escape_tags(label)}"'
        body = escape_tags("\n".join(self.lines)) + _GOES_ON * self.goes_on
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
    messages: str = "",
) -> Kept:
    """The chosen pieces as a block of the summary, the most needed text first.

    Args:
        picks: The most needed first; the last are dropped if space runs out.
        staying: Entries that stay unchanged in the context.
        files: The known current state of the files.
        on_disk: Reads a file; None if files are unavailable.
        room_tokens: Limit of the block.
        counter: Counts its tokens.
        shown: Files that the summary shows anyway; their lines are not repeated unless the pick is
            lasting.
        messages: Text of the messages that stay; neither are lines in it.
    """
    states = {name: file for file in files for name in (*file.old_paths, file.path)}
    filler = _Filler(states, on_disk, room_tokens, counter, shown, messages)
    for pick in picks:
        if pick.is_lasting or pick.piece.entry_id not in staying:
            filler.add(pick)
    excerpts = filler.excerpts()
    missing = filler.missing
    if not excerpts:
        return Kept()
    lines = [excerpt.text for excerpt in excerpts]
    if missing:
        more = f", and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        names = escape_tags("; ".join(missing[:_MOST_NAMED]))
        lines.append(f"(There was no room for all of this: {names}{more}.)")
    body = "\n".join(lines)
    paths = frozenset(excerpt.path for excerpt in excerpts if excerpt.path)
    return Kept(
        f"<kept>\n{body}\n</kept>", paths, tuple(_shown_files(excerpts, states)), bool(missing)
    )


def _shown_files(
    excerpts: Sequence[Excerpt], states: Mapping[str, FileState]
) -> Iterator[ShownFile]:
    """What `excerpts` show of files as they are now."""
    current: dict[str, list[Excerpt]] = {}
    for excerpt in excerpts:
        if excerpt.state.startswith(_CURRENT):
            current.setdefault(excerpt.path, []).append(excerpt)
    for path, parts in current.items():
        if path in states:
            shown = [line for part in parts for line in part.lines]
            is_whole = set(states[path].text.split("\n")) <= {"", *shown}
            spans = tuple((part.first, part.last) for part in parts if part.first)
            yield ShownFile(path, "\n".join(shown), is_whole, spans)


def excerpts_in(text: str) -> Iterator[Excerpt]:
    """The excerpts in `text`."""
    for found in _EXCERPT.finditer(text):
        lines = tuple(found["text"].removesuffix(_GOES_ON).split("\n"))
        first, path = int(found["first"] or 0), (found["path"] or "").replace(_QUOTE, '"')
        label = found["label"] or f"file {path}"
        yield Excerpt(label, path, first, lines, is_lasting=bool(found["lasting"]))


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
            is_placed=excerpt.first > 0 or not excerpt.path,
            is_lasting=excerpt.is_lasting,
        )
        for excerpt in excerpts_in(block[1] if block else "")
    )


class _Filler:
    """Adds picks while there is space; a line of a text costs once, however often it is chosen."""

    def __init__(
        self,
        states: Mapping[str, FileState],
        on_disk: ReadFile | None,
        room: int,
        counter: TokenCounter,
        shown: Sequence[ShownFile],
        messages: str,
    ) -> None:
        self._messages = "\n".join(line for _, line in plain_lines(messages))
        self._shown = {file.path: file for file in shown}
        self._states = states
        self._on_disk = on_disk
        self._room = room
        self._counter = counter
        self._completed: set[str] = set()
        self._texts: dict[str | tuple[str, ...], _Text] = {}
        self.missing: list[str] = []

    def add(self, pick: Pick) -> None:
        """Add all of `pick`, or as much of it as fits."""
        parts = list(self._parts(pick))
        sizes = [self._add(pick, excerpt) for excerpt in parts]
        rest = [
            f"{part.first + size}-{part.last}" if part.first else ""
            for size, part in zip(sizes, parts, strict=True)
            if size < len(part.lines)
        ]
        if rest:
            spans = ", ".join(filter(None, rest))
            recall = recall_mark(pick.piece.entry_id) if pick.piece.entry_id else ""
            part = "the rest of " if any(sizes) else ""
            self.missing.append(f"{part}{pick.piece.source} {spans} {recall}".strip())

    def excerpts(self) -> list[Excerpt]:
        """The excerpts added so far, in the order in which their texts were first added."""
        texts = self._texts.values()
        return [excerpt for text in texts for excerpt in text.excerpts(self._counter)]

    def _add(self, pick: Pick, excerpt: Excerpt) -> int:
        """Returns how many lines of `excerpt` are now in the block or the files shown."""
        piece, is_current = pick.piece, excerpt.state.startswith(_CURRENT)
        shown = self._shown.get(excerpt.path) if is_current else None
        is_shown = shown is not None and shown.shows(excerpt.lines)
        if not pick.is_lasting and (is_shown or "\n".join(excerpt.lines) in self._messages):
            return len(excerpt.lines)
        key = excerpt.path if is_current else (excerpt.label, *piece.lines)
        known = self._runs_of(excerpt.path) if is_current else [(piece.first, piece.lines)]
        text = self._texts.get(key) or _Text(excerpt, piece, known)
        fresh = 0 if text.lines else _HEAD_TOKENS
        count = 0
        for number, line in enumerate(excerpt.lines, excerpt.first):
            is_there = text.lines.get(number) == line
            fresh += 0 if is_there else self._counter.count_text(f"{line}\n")
            if fresh > self._room and not pick.is_certain:
                break
            count += 1
        if count < len(excerpt.lines) and count < _LEAST_LINES:
            return 0
        self._room -= fresh
        self._texts[key] = text
        text.lines.update(enumerate(excerpt.lines[:count], excerpt.first))
        text.made = replace(excerpt, is_lasting=text.made.is_lasting or pick.is_lasting)
        return count

    def _parts(self, pick: Pick) -> Iterator[Excerpt]:
        piece = pick.piece
        for a, b in pick.spans or ((piece.first, piece.last),):
            if pick.spans:
                is_code = not is_document(piece.path) if piece.path else _is_nested(piece.lines)
                end_of = end_of_block if is_code else end_of_paragraph
                b = piece.first + end_of(piece.lines, a - piece.first, b - piece.first)
            lines = piece.lines[a - piece.first : b - piece.first + 1]
            if not piece.path:
                state = _OLD_OUTPUT if piece.is_outdated else ""
                path = _path_in_diff(piece.lines, a - piece.first)
                label = f"{piece.source}, in {path}" if path else piece.source
                yield Excerpt(label, "", a, lines, state)
                continue
            file = self._states.get(piece.path)
            path = file.path if file is not None else piece.path
            places = lines_now((piece.first, piece.lines), a, b, self._runs_of(path))
            state = _NOW if file is not None and file.is_from_disk else _LAST_KNOWN
            state += f", {file.doubt}" if file is not None and file.doubt else ""
            for first, run in places:
                yield Excerpt(f"file {path}", path, first, tuple(run), state)
            if not places and piece.kind == "kept":
                yield Excerpt(piece.source, path, a, lines, _OLD if file is not None else "")
            elif not piece.is_placed and _is_among(lines, self._runs_of(path)):
                yield Excerpt(piece.source, path, a, lines, _UNPLACED)

    def _runs_of(self, path: str) -> Sequence[Run]:
        file = self._states.get(path)
        if file is None:
            return ()
        if path not in self._completed:
            self._completed.add(path)
            complete_file(file, self._on_disk)
        return file.runs


def _is_among(lines: Sequence[str], runs: Sequence[Run]) -> bool:
    """Whether `lines` stand together in one of `runs`."""
    return any("\n".join(lines) in "\n".join(run) for _, run in runs)


class _Text:
    """The chosen lines of one file as it is now, or of one other text, by number."""

    def __init__(self, made: Excerpt, piece: Piece, known: Sequence[Run]) -> None:
        self.made = made
        self.lines: dict[int, str] = {}
        self._piece = piece
        self._known = known

    def excerpts(self, counter: TokenCounter) -> Iterator[Excerpt]:
        """One excerpt for each run without a gap; a text that is there whole needs no numbers."""
        is_whole = len(self.lines) == len(self._piece.lines) and not self.made.path
        is_placed = self.made.state.startswith(_CURRENT) or self._piece.is_placed
        is_code = bool(self.made.path) and not is_document(self.made.path)
        self._fill_gaps(counter)
        known = [(n, line) for first, run in self._known for n, line in enumerate(run, first)]
        seen = {start: {number - start for number in self.lines} for start, _ in self._known}
        for first, lines in runs_of(self.lines):
            number = first if is_placed and not is_whole else 0
            behind = first + len(lines)
            after, below = next(((n, s) for n, s in known if n >= behind and s.strip()), (0, ""))
            is_parted = after > behind or not lines[-1].strip()
            cut = is_code and is_inside_block(below, lines, is_parted=is_parted)
            above = ""
            for start, run in self._known if is_code else ():
                if start <= first < start + len(run):
                    above = titles_above(self.made.path, run, first - start, seen[start])
            yield replace(self.made, first=number, lines=tuple(lines), inside=above, goes_on=cut)

    def _fill_gaps(self, counter: TokenCounter) -> None:
        """Add the lines of gaps that take less than the tags of another excerpt."""
        known = {n: line for first, run in self._known for n, line in enumerate(run, first)}
        for before, after in pairwise(sorted(self.lines)):
            gap = {n: known[n] for n in range(before + 1, after) if n in known}
            if len(gap) == after - before - 1 <= _JOINED_LINES:
                tokens = sum(counter.count_text(f"{line}\n") for line in gap.values())
                self.lines.update(gap if tokens <= _HEAD_TOKENS else {})


def _is_nested(lines: Sequence[str]) -> bool:
    """Whether indentation tells where a part of `lines` ends: in a diff and in JSON."""
    try:
        return _is_diff(lines) or isinstance(json.loads("\n".join(lines)), dict | list)
    except (ValueError, RecursionError):
        return False


def _is_diff(lines: Sequence[str]) -> bool:
    return any(map(_DIFF_FILE.match, lines))


def _path_in_diff(lines: Sequence[str], first: int) -> str:
    """The file of the hunk at index `first` of a diff, unless its header comes with or after it."""
    for before, line in enumerate(reversed(lines[: first + 1])):
        if found := _DIFF_FILE.match(line):
            return found["path"] if before else ""
    return ""


def _escape_quotes(text: str) -> str:
    return text.replace('"', _QUOTE).replace("\n", " ")
