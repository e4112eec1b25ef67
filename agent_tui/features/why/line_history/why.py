"""Explains why a line of a file is there: who asked for it, and the change that made it."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, assert_never

from agent_tui.errors import UsageError
from agent_tui.features.why.line_history.facts import ChangedBlocks, ChangeFacts, facts_of
from agent_tui.features.why.line_history.kept_lines import lines_of, sources_of
from agent_tui.features.why.line_history.moves import FirstText, trace_move
from agent_tui.features.why.line_history.project import FileHistory, UnrecordedMove
from agent_tui.features.why.line_history.replay import (
    Earlier,
    Made,
    Origin,
    Origins,
    Replay,
    Unknown,
    Unrecorded,
    replay_changes,
)
from agent_tui.safe_paths import follow_links, path_from
from agent_tui.sessions.replay.file_changes import NOT_PULLED
from agent_tui.tools.files.opening import read_judged_file
from agent_tui.tools.files.text_files import decode
from agent_tui.tools.git.blame import Blame, Commit

Status: TypeAlias = Literal["recorded", "ambiguous", "unrecorded", "earlier", "unknown"]

_MOST_FILE_BYTES = 5_000_000
_NOT_PULLED = (
    "Contents that could tell were not pulled. Whoever has them: agent-tui sessions push "
    "--with-files."
)
_MOST_BLAMED_LINES = 500
"""Of one question; git takes longer for each, and nobody reads so many."""

_PLACE = re.compile(r"(?P<file>.+):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """Why a line is there, as far as records prove it.

    Attributes:
        path: The file, absolute.
        line: The line's number, from 1.
        text: The line.
        status: ``recorded``: one recorded change made it. ``ambiguous``: one of several, or it came
            from outside. ``unrecorded``: it came between recorded changes. ``earlier``: it was
            there before the first one. ``unknown``: no record tells, or the contents that would
            tell were not kept.
        said: The answer in a sentence.
        changes: The recorded changes concerned, in order of time.
        commit: The commit that git names; None for a line that isn't committed.
        unread: Files of sessions that name the file but cannot be read.
        moves: The moves of the file without a record, since the line was made, the last one first.
    """

    path: Path
    line: int
    text: str
    status: Status
    said: str
    changes: tuple[ChangeFacts, ...]
    commit: Commit | None
    unread: tuple[Path, ...] = ()
    moves: tuple[UnrecordedMove, ...] = ()

    def says_the_same_as(self, other: "LineAnswer") -> bool:
        """Whether both lines of a file have the same answer."""
        return (self.status, self.said, self.changes, self.commit, self.moves) == (
            *(other.status, other.said, other.changes),
            *(other.commit, other.moves),
        )


@dataclass(frozen=True, slots=True)
class LinePlace:
    """Lines of a file, from number `first` to `last`; the path is absolute, links followed."""

    path: Path
    first: int
    last: int

    @property
    def is_one(self) -> bool:
        """Whether it is one line."""
        return self.first == self.last


def read_place(written: str, cwd: Path) -> LinePlace:
    """The lines that ``FILE:LINE`` or ``FILE:LINE-LINE`` names.

    Raises:
        UsageError: It has no line number, or the last one is before the first.
    """
    place = _PLACE.fullmatch(written.strip())
    first = int(place["first"]) if place is not None else 0
    last = int(place["last"] or first) if place is not None else 0
    if place is None or not 1 <= first <= last:
        wanted = "Give FILE:LINE or FILE:LINE-LINE."
        raise UsageError(f"{written.strip() or 'Nothing'} names no line.", wanted)
    try:
        path = Path(follow_links(str(cwd / Path(place["file"]).expanduser())))
        return LinePlace(path, first, last)
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"{place['file']} cannot be read: {error}.", "Give FILE:LINE.") from error


def read_present(path: Path) -> str:
    """The text of the file at `path`, which must have no links, as from `read_place`.

    Raises:
        UsageError: It cannot be read, is not text, or is too large to explain.
    """
    try:
        content = read_judged_file(path, _MOST_FILE_BYTES)
        if content is None:
            limit = _MOST_FILE_BYTES // 1_000_000
            raise UsageError(f"{path} is larger than {limit} MB.", "Only smaller files are kept.")
        file = decode(content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path} cannot be read: {reason}.", "Give FILE:LINE.") from error
    if file is None:
        raise UsageError(f"{path} is not a text file.", "Only lines of text can be explained.")
    return file.text


async def explain_lines(
    history: FileHistory, place: LinePlace, present: str, blame: Blame | None
) -> list[LineAnswer]:
    """Explain lines of a file, in order.

    Args:
        history: The file's recorded changes.
        place: The lines; those after the file's last one are left out.
        present: The file's present text.
        blame: Asks git about 500 lines, first those that no change is known to have made; None if
            git may not run.

    Raises:
        UsageError: The file does not have the first line.
    """
    lines = lines_of(present)
    if place.first > len(lines):
        count = f"{len(lines)} line{'s' * (len(lines) != 1)}"
        raise UsageError(f"{place.path} has {count}.", "Give a line that it has.")
    last = min(place.last, len(lines))
    wanted = range(place.first, last + 1)
    replay = await asyncio.to_thread(_replay, history, present)
    while not history.maybe and (first := _untraced(history, replay, present, wanted)) is not None:
        renames = await blame.of_former(history.start).renames() if blame is not None else []
        longer = await asyncio.to_thread(trace_move, history, first, renames)
        if longer is None:
            break
        history, replay = longer, await asyncio.to_thread(_replay, longer, present)
    commits: dict[int, Commit] = {}
    if blame is not None:
        unsure_first = sorted(
            wanted, key=lambda line: status_of(replay.lines[line - 1]) == "recorded"
        )
        former = [move.before for move in reversed(history.moves)]
        commits = await _commits(blame, former, lines, unsure_first[:_MOST_BLAMED_LINES])
    explained = _explain(history, replay, place.path, lines, {n: commits.get(n) for n in wanted})
    return await asyncio.to_thread(list, explained)


def _replay(history: FileHistory, present: str) -> Replay:
    joins = {move.at: move.is_sure for move in history.moves if _is_joint(move)}
    return replay_changes(history.changes, present, history.content, joins)


def _is_joint(move: UnrecordedMove) -> bool:
    """Whether the file before `move` may have been another one."""
    return move.proof == "similar" or not move.is_sure


def _untraced(
    history: FileHistory, replay: Replay, present: str, wanted: Iterable[int]
) -> FirstText | None:
    """The first known text of the file, if one of the `wanted` lines is from it."""
    origins = frozenset[Origin]().union(*(replay.lines[line - 1] for line in wanted))
    if not history.changes:
        return FirstText(present, None)
    first, known = history.changes[0], replay.versions[0]
    if Earlier() in origins:
        return FirstText(known.before or "", first.made_ms)
    is_new = known.before == "" and first.maker in ("command", "user command")
    is_wanted = any(isinstance(one, Made) and one.change == 0 for one in origins)
    if is_new and is_wanted and known.after is not None:
        return FirstText(known.after, first.made_ms, is_made=True)
    return None


def _explain(
    history: FileHistory,
    replay: Replay,
    path: Path,
    lines: Sequence[str],
    commits: Mapping[int, Commit | None],
) -> Iterator[LineAnswer]:
    facts = _Facts(history, replay)
    for line, commit in commits.items():
        origins = _not_after(commit, replay.lines[line - 1], history)
        status = _status_in(history, origins)
        yield LineAnswer(
            path,
            line,
            lines[line - 1],
            status,
            _said(status, origins, history),
            tuple(facts.about(origins)),
            commit,
            history.unread,
            tuple(_moves_since(origins, history)),
        )


def _not_after(commit: Commit | None, origins: Origins, history: FileHistory) -> Origins:
    """Those of several `origins` with which the line can have been in `commit`."""
    if commit is None or not commit.committed_ms:
        return origins
    possible = frozenset(
        origin
        for origin in origins
        if not isinstance(origin, Made)
        or history.changes[origin.change].made_ms <= commit.committed_ms
    )
    return possible or origins


def _moves_since(origins: Origins, history: FileHistory) -> Iterator[UnrecordedMove]:
    """The moves without a record after the oldest of `origins`, the last one first."""
    oldest = min(_begin(origin) for origin in origins)
    return (move for move in reversed(history.moves) if oldest < move.at)


def _begin(origin: Origin) -> int:
    """The index of the change with which the line may have come, at the earliest."""
    match origin:
        case Made(change, _):
            return change
        case Unrecorded(_, until):
            return until
        case Unknown(since, _):
            return since
        case Earlier():
            return -1
        case _:
            assert_never(origin)


def _status_in(history: FileHistory, origins: Origins) -> Status:
    status = status_of(origins)
    is_untold = not history.changes or history.maybe
    return "unknown" if status == "earlier" and is_untold else status


def status_of(origins: Origins) -> Status:
    """How certain the answer is that `origins` give."""
    if len(origins) != 1:
        return "unknown" if any(isinstance(one, Unknown) for one in origins) else "ambiguous"
    only = next(iter(origins))
    match only:
        case Made():
            return "recorded"
        case Unrecorded():
            return "unrecorded"
        case Earlier():
            return "earlier"
        case Unknown():
            return "unknown"
        case _:
            assert_never(only)


class _Facts:
    """The facts about the changes of a file, each found out once."""

    def __init__(self, history: FileHistory, replay: Replay) -> None:
        self._history = history
        self._replay = replay
        self._known: dict[int, ChangeFacts] = {}
        self._blocks: dict[int, ChangedBlocks] = {}

    def about(self, origins: Origins) -> Iterator[ChangeFacts]:
        """The facts about the changes that `origins` name, in order of time."""
        named: dict[int, int | None] = {}
        for origin in origins:
            match origin:
                case Made(change, line):
                    named[change] = line
                case Unknown(since, until):
                    lost = (at for at in range(since, until) if not self._is_look(at))
                    named |= {change: named.get(change) for change in lost}
                case _:
                    pass
        for change in sorted(named):
            line = named[change]
            facts = self._of(change)
            yield facts if line is None else self._blocks_of(change).complete(facts, line)

    def _is_look(self, change: int) -> bool:
        return self._history.changes[change].maker == "read"

    def _of(self, change: int) -> ChangeFacts:
        if change not in self._known:
            history = self._history
            self._known[change] = facts_of(history.changes[change], history.sessions)
        return self._known[change]

    def _blocks_of(self, change: int) -> ChangedBlocks:
        if change not in self._blocks:
            self._blocks[change] = ChangedBlocks(self._replay.versions[change])
        return self._blocks[change]


def _said(status: Status, origins: Origins, history: FileHistory) -> str:
    answer = _answer(status, origins, history)
    if status in ("unknown", "ambiguous") and history.changes and _lacks_pulled_contents(history):
        return f"{answer} {_NOT_PULLED}"
    return answer


def _answer(status: Status, origins: Origins, history: FileHistory) -> str:
    changes = [change for change in history.changes if change.maker != "read"]
    match status:
        case "recorded":
            return "A recorded change made this line."
        case "earlier":
            first = f"the first recorded change ({day_of(changes[0].entry.timestamp)})"
            return f"No session made this line: it was there before {first}."
        case "unknown" if Earlier() in origins and history.maybe:
            files = " or ".join(path_from(path, history.path.parent) for path in history.maybe)
            return f"Not known: the file may have been {files}, moved or copied without a record."
        case "unknown" if not changes:
            return "Not known: no recorded session changed this file."
        case "unrecorded":
            between = _between(origins, history)
            return f"Not recorded: changed outside{between}, or by a command without a record."
        case "ambiguous":
            return f"Not known exactly: {' or '.join(_possible(origins))}."
        case "unknown":
            return "Not known: the contents around these changes were not kept."
        case _:
            assert_never(status)


def _lacks_pulled_contents(history: FileHistory) -> bool:
    """Whether contents of a session from another clone are missing here."""
    versions = [
        version
        for change in history.changes
        for version in (change.before, change.after)
        if version is not None and version.why_not == NOT_PULLED
    ]
    return any(history.content(version.digest) is None for version in versions)


def _possible(origins: Origins) -> Iterator[str]:
    """What may have happened, each in a few words."""
    made = sum(isinstance(origin, Made) for origin in origins)
    if made:
        yield "one of these changes made this line" if made > 1 else "this change made the line"
    if any(isinstance(origin, Unrecorded) for origin in origins):
        yield "it came without a record"
    if any(isinstance(origin, Earlier) for origin in origins):
        yield "it was there before the first recorded change"


def _between(origins: Origins, history: FileHistory) -> str:
    origin = next(iter(origins))
    assert isinstance(origin, Unrecorded)
    times = [change.entry.timestamp for change in history.changes]
    since = f" after {minute_of(times[origin.since])}" if origin.since >= 0 else ""
    until = f" before {minute_of(times[origin.until])}" if origin.until < len(times) else ""
    return f",{since}{' and' if since and until else ''}{until}" if since or until else ""


def day_of(timestamp: str) -> str:
    """The day of a time in ISO 8601."""
    return timestamp[:10]


def minute_of(timestamp: str) -> str:
    """A time in ISO 8601 to the minute, as shown."""
    return timestamp[:16].replace("T", " ") + " UTC" if timestamp else "an unknown time"


async def _commits(
    blame: Blame, former: Iterable[str], lines: Sequence[str], numbers: Iterable[int]
) -> dict[int, Commit]:
    """The commits of lines, by their numbers, for those that are committed.

    If the file is not, that is asked of the first of the paths `former` that is.
    """
    content = await blame.committed()
    for path in former:
        if content:
            break
        blame = blame.of_former(path)
        content = await blame.committed()
    file = decode(content) if content else None
    if file is None:
        return {}
    kept = (await asyncio.to_thread(sources_of, lines_of(file.text), lines)).kept
    committed = {n: source + 1 for n in numbers if (source := kept[n - 1]) is not None}
    found = await blame.commits_of(sorted(committed.values()))
    return {number: found[line] for number, line in committed.items() if line in found}
