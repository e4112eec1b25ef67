"""Which change made each line of a file: a replay of its recorded changes, exact or "not known"."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from agent_tui.features.why.line_history.changes import RecordedChange
from agent_tui.features.why.line_history.kept_lines import lines_of, sources_of
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.sessions.replay.file_changes import FileVersion
from agent_tui.tools.call_edits import SeenText, WrittenText
from agent_tui.tools.files.text_files import decode
from agent_tui.tools.files.versions import LINK

ReadContent: TypeAlias = Callable[[str], bytes | None]
"""The kept content with a digest; None if there is none."""


@dataclass(frozen=True, slots=True)
class Made:
    """The line is in the file since a recorded change.

    Attributes:
        change: The index of the change.
        line: The index of the line in the file after the change.
    """

    change: int
    line: int


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """The line came between two changes whose versions are recorded, and no record says how.

    Attributes:
        since: The index of the change before; -1 for none.
        until: The index of the change after; the number of changes for none.
    """

    since: int
    until: int


@dataclass(frozen=True, slots=True)
class Earlier:
    """The line was there before the first recorded change."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The line came with changes whose contents were not kept.

    Attributes:
        since: The index of the first of them.
        until: The index after the last of them.
    """

    since: int
    until: int


Origin: TypeAlias = Made | Unrecorded | Earlier | Unknown
Origins: TypeAlias = frozenset[Origin]
"""One origin that is certain, or several of which one is right."""

_EARLIER: Origins = frozenset((Earlier(),))
_NO_JOINS: Mapping[int, bool] = MappingProxyType({})


@dataclass(slots=True)
class Versions:
    """The texts before and after one change, as far as they are known."""

    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """The origins of the lines of a file, and the texts around each change."""

    lines: Sequence[Origins]
    versions: Sequence[Versions]


def replay_changes(
    changes: Sequence[RecordedChange],
    present: str,
    content: ReadContent,
    joins: Mapping[int, bool] = _NO_JOINS,
) -> Replay:
    """Find the origin of each line of a file.

    Args:
        changes: Its changes in order of time.
        present: The text of the file now, with ``\\n`` at line ends.
        content: Reads kept contents.
        joins: Indices of changes before which the file was another one, only similar, and whether
            it was certainly that one, moved and changed.
    """
    versions = _known_versions(changes, present, content)
    state = _State(changes, joins)
    for index, (change, known) in enumerate(zip(changes, versions, strict=True)):
        if known.before is not None:
            state.find(known.before, index)
        if known.after is None:
            state.lose(index)
        elif known.before is not None:
            state.change(known.after, index, is_restore=change.maker == "restore")
        else:
            state.overwrite(known.after, index)
    state.find(present, len(changes))
    return Replay(state.origins, versions)


class _State:
    """The text at one moment of the replay, and the origins of its lines."""

    def __init__(self, changes: Sequence[RecordedChange], joins: Mapping[int, bool]) -> None:
        self._changes = changes
        self._joins = joins
        self._text: str | None = None
        self._newest = -1
        self._lost: list[int] = []
        self._seen: dict[str, list[Origins]] = {}
        self.origins: list[Origins] = []

    def lose(self, index: int) -> None:
        """A change happened whose result is not known."""
        self._lost.append(index)
        self._newest = index

    def find(self, text: str, index: int) -> None:
        """The text before change `index` is `text`, whatever happened since the last one."""
        lines = lines_of(text)
        if self._text is None:
            self.origins = [self._first(index, line) for line in lines]
        elif text != self._text:
            came = [self._came_before(index, line) for line in lines]
            self._follow(text, lambda at: came[at])
            # The file is as it was: lines that came back have the answer that they had.
            seen = self._seen.get(_key(text), came)
            each = zip(self.origins, came, seen, strict=True)
            self.origins = [then if one == new else one for one, new, then in each]
        self._doubt_kept(lines)
        if not self._joins.get(index, True):
            doubt = frozenset((self._unrecorded_until(index),))
            self.origins = [origins | doubt for origins in self.origins]
        self._take(text)

    def change(self, text: str, index: int, *, is_restore: bool) -> None:
        """Change `index` made `text` of the present text."""
        if not is_restore:
            self._follow(text, lambda line: frozenset((Made(index, line),)))
        elif (seen := self._seen.get(_key(text))) is not None:
            self.origins = seen
        else:
            self._follow(text, lambda _line: frozenset((Unknown(index, index + 1),)))
        self._take(text)
        self._newest = index

    def overwrite(self, text: str, index: int) -> None:
        """Change `index`, which may have made any line, left `text` in place of an unknown one."""
        lines = lines_of(text)
        earlier = _EARLIER if self._text is None else frozenset[Origin]()
        is_first = self._text is None and not self._lost
        self._follow(
            text,
            lambda at: earlier if is_first else earlier | self._came_before(index, lines[at]),
        )
        self._doubt_kept(lines)
        self.origins = [one | {Made(index, at)} for at, one in enumerate(self.origins)]
        self._take(text)
        self._newest = index

    def _first(self, index: int, line: str) -> Origins:
        """The origin of a line of the first known text, before change `index`.

        Without a record of that text, it was found by taking the change back from a later one, so
        that a line may be younger than the change.
        """
        if self._lost:
            return _EARLIER | self._came_before(index, line)
        is_proven = index == len(self._changes) or _is_recorded(self._changes[index])
        return _EARLIER if is_proven else _EARLIER | self._came_before(index, line)

    def _doubt_kept(self, lines: Sequence[str]) -> None:
        """A lost change may have removed a line and added it again."""
        if not self._lost:
            return
        self.origins = [
            one | self._lost_with(line) for one, line in zip(self.origins, lines, strict=True)
        ]

    def _lost_with(self, line: str) -> Origins:
        """The lost changes that may have written `line`; empty if none can have."""
        lost = [at for at in self._lost if self._changes[at].edit.may_write(line)]
        return frozenset((Unknown(lost[0], lost[-1] + 1),)) if lost else frozenset()

    def _came_before(self, index: int, line: str) -> Origins:
        """The origin of `line`, which came between the last known text and change `index`."""
        if lost := self._lost_with(line):
            return lost
        return frozenset((self._unrecorded_until(index),))

    def _unrecorded_until(self, index: int) -> Unrecorded:
        """The origin of a line that came before change `index`, after a change with a record."""
        since, until = self._newest, index
        if any(since < join <= index for join in self._joins):
            since = -1  # it may be older than the file that this one was
        while since >= 0 and self._changes[since].after is None:
            since -= 1
        while until < len(self._changes) and self._changes[until].before is None:
            until += 1
        return Unrecorded(since, until)

    def _follow(self, text: str, new: Callable[[int], Origins]) -> None:
        """Pass the origins on to the lines of `text`; `new` gives those of added lines."""
        before, sources = self.origins, sources_of(lines_of(self._text or ""), lines_of(text))
        followed = [new(at) if old is None else before[old] for at, old in enumerate(sources.kept)]
        for at, places in sources.possible.items():
            followed[at] = followed[at].union(*(before[old] for old in places))
        self.origins = followed

    def _take(self, text: str) -> None:
        self._text = text
        self._lost = []
        key = _key(text)
        if (seen := self._seen.get(key)) is None:
            self._seen[key] = self.origins
        else:  # of equal versions, either may come back
            self._seen[key] = [one | other for one, other in zip(seen, self.origins, strict=True)]


def _is_recorded(change: RecordedChange) -> bool:
    """Whether the session says what the file was before `change`."""
    return change.before is not None or isinstance(change.edit, SeenText)


def _key(text: str) -> str:
    return digest_of(text.encode("utf-8", "surrogatepass"))


def _known_versions(
    changes: Sequence[RecordedChange], present: str, content: ReadContent
) -> list[Versions]:
    """The texts around each change: the kept ones, and those that follow from what it did."""
    versions = [_recorded_versions(change, content) for change in changes]
    last: str | None = None
    for change, known in zip(changes, versions, strict=True):
        _go_forward(change, known, last)
        last = known.after
    following: str | None = present
    for change, known in zip(reversed(changes), reversed(versions), strict=True):
        _go_back(change, known, following)
        following = known.before
    return versions


def _recorded_versions(change: RecordedChange, content: ReadContent) -> Versions:
    if isinstance(change.edit, SeenText):
        return Versions(change.edit.text, change.edit.text)
    return Versions(text_of(change.before, content), text_of(change.after, content))


def _go_forward(change: RecordedChange, known: Versions, last: str | None) -> None:
    """Complete `known`, if the change applies to `last`, the text after the one before."""
    is_whole = isinstance(change.edit, WrittenText)
    if known.before is None and last is not None and _may_be(last, change.before):
        after = change.edit.forward(last)
        is_proven = change.before is not None or not is_whole
        if is_proven and (after is not None or change.before is not None):
            known.before = last
    if known.after is None and (known.before is not None or is_whole):
        after = change.edit.forward(known.before or "")
        known.after = after if after is not None and _may_be(after, change.after) else None


def _go_back(change: RecordedChange, known: Versions, following: str | None) -> None:
    """Complete `known`, if the change can be taken back from `following`, the next text."""
    if known.after is None and following is not None and _may_be(following, change.after):
        before = change.edit.back(following)
        is_proven = change.after is not None or before is not None
        known.after = following if is_proven else None
    if known.before is None and known.after is not None:
        before = change.edit.back(known.after)
        known.before = before if before is not None and _may_be(before, change.before) else None


def text_of(version: FileVersion | None, content: ReadContent) -> str | None:
    """The text of a recorded version, empty if there was no file; None if it is not known."""
    if version is None or version.mode == LINK:
        return None
    if not version.digest:
        return ""
    kept = content(version.digest)
    file = decode(kept) if kept is not None else None
    return file.text if file is not None else None


def _may_be(text: str, version: FileVersion | None) -> bool:
    """Whether `text` can be that of the recorded `version`, of which only the hash is known."""
    return version is None or version.digest in digests_of(text)


def digests_of(text: str) -> Iterator[str]:
    """The hashes of files with this text: with either line end, with and without a mark."""
    for written in (text, text.replace("\n", "\r\n")):
        encoded = written.encode("utf-8", "surrogatepass")
        yield digest_of(encoded)
        yield digest_of(b"\xef\xbb\xbf" + encoded)
