"""What a file was before it was moved or copied without a record, as git or its content tells."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent_tui.features.why.line_history.changes import in_order_of_time
from agent_tui.features.why.line_history.file_sessions import RecordedVersion
from agent_tui.features.why.line_history.project import (
    FileHistory,
    UnrecordedMove,
    read_file_history,
)
from agent_tui.features.why.line_history.replay import digests_of, text_of
from agent_tui.messages import AssistantMessage
from agent_tui.safe_paths import follow_links, path_exists, path_from
from agent_tui.sessions.entries import MessageEntry, milliseconds
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.tools.git.blame import Rename

_LEAST_SIMILAR = 0.5
"""Git's least similarity of a renamed file (``git diff -M``)."""

_MOST_COMPARED = 1_000
"""Files whose contents are compared, the last changed ones: git's ``diff.renameLimit``."""

_LEAST_COPIED = 40
"""Letters and digits that are no coincidence: what git asks of copied lines (``git blame -C``)."""

_COARSE_CLOCK_MS = 2_000
"""The coarsest time of a file: FAT counts two seconds."""

_ALWAYS = 1 << 62


@dataclass(frozen=True, slots=True)
class FirstText:
    """The earliest text that a history tells of its file.

    Attributes:
        text: The text.
        made_ms: When the file had it, in milliseconds since 1970; None for now.
        is_made: Whether the first change, a command, made the file with this text.
    """

    text: str
    made_ms: int | None
    is_made: bool = False


def trace_move(
    history: FileHistory, first: FirstText, renames: Sequence[Rename]
) -> FileHistory | None:
    """The history with that of the file that it was before; None if none is found. Reads files.

    If several files may be the one, the result names them and has no more changes than `history`.

    Args:
        history: The history so far.
        first: The earliest text that it tells.
        renames: What git says about the file.
    """
    if first.is_made:
        return _by_command(history, first.text)
    before_ms = first.made_ms if first.made_ms is not None else _ALWAYS
    if (named := _by_git(history, before_ms, renames)) is not None:
        return named
    added = (one.until_ms for one in renames if one.after == history.start and not one.before)
    return _by_content(history, first, min(before_ms, next(added, None) or _ALWAYS))


def _by_command(history: FileHistory, text: str) -> FileHistory | None:
    """The file is one that the same command removed, if half of its content is the same."""
    made = history.changes[0]
    removed = {
        one.path: one.before
        for one in in_order_of_time(history.sessions)
        if one.entry.id == made.entry.id and one.after is not None and not one.after.digest
    }
    similar = {
        path: _similarity(before, text)
        for path, version in removed.items()
        if (before := text_of(version, history.content)) is not None
    }
    former = max(similar, key=lambda path: similar[path], default="")
    if not former or similar[former] < _LEAST_SIMILAR:
        return None
    moved = replace(made, moved_from=former, before=removed[former])
    earlier = read_file_history(history.finder, history.path, former, made.made_ms)
    before = [one for one in earlier.changes if one.entry.id != made.entry.id]
    later = replace(history, changes=(moved, *history.changes[1:]))
    return later.after(replace(earlier, changes=before))


def _by_git(history: FileHistory, before_ms: int, renames: Sequence[Rename]) -> FileHistory | None:
    after = history.start
    for rename in renames:
        if rename.after != after or not rename.before:
            continue
        after = rename.before
        until_ms = min(before_ms - 1, rename.until_ms or _ALWAYS)
        earlier = read_file_history(history.finder, history.path, rename.before, until_ms)
        if earlier.changes:
            move = UnrecordedMove(0, rename.before, history.start, "git")
            return history.after(earlier, move)
    return None


@dataclass(frozen=True, slots=True)
class _Candidate:
    path: str
    version: RecordedVersion
    is_moved: bool
    similarity: float

    @property
    def rank(self) -> tuple[bool, bool, float]:
        return self.similarity == 1, self.is_moved, self.similarity


def _by_content(history: FileHistory, first: FirstText, before_ms: int) -> FileHistory | None:
    known = {history.start, *(change.path for change in history.changes)}
    versions = {
        path: [one for one in of_file if one.made_ms < before_ms]
        for path, of_file in history.finder.recorded_versions(history.path).items()
        if path not in known
    }
    versions = {path: of_file for path, of_file in versions.items() if of_file}
    found = list(_same(versions, first.text)) or list(_similar(history, versions, first.text))
    best = max((one.rank for one in found), default=None)
    found = [one for one in found if one.rank == best]
    name = Path(history.start).name
    found = [one for one in found if Path(one.path).name == name] or found
    if not found:
        return None
    last = max(found, key=lambda one: one.version.made_ms)
    joined = _joined(history, first, last)
    others = {one.path for one in found} - {last.path}
    if others and not (joined and others <= _earlier_paths(joined)):
        return replace(history, maybe=tuple(sorted(one.path for one in found)))
    return joined


def _earlier_paths(history: FileHistory) -> set[str]:
    """The files that the one of `history` was before, as far as its contents tell."""
    made = history.changes[0]
    text = text_of(made.before, history.content)
    longer = _by_content(history, FirstText(text, made.made_ms), made.made_ms) if text else None
    changes = longer.changes if longer is not None else ()
    return {change.path for change in changes}


def _same(versions: Mapping[str, Sequence[RecordedVersion]], text: str) -> Iterator[_Candidate]:
    """The files that had exactly this text when a recorded change was made."""
    if not text.strip():
        return
    digests = set(digests_of(text))
    for path, of_file in versions.items():
        same = [one for one in of_file if one.version.digest in digests]
        if same:
            is_moved = same[-1] is of_file[-1] and not path_exists(Path(path))
            if is_moved or sum(map(str.isalnum, text)) >= _LEAST_COPIED:
                yield _Candidate(path, same[-1], is_moved, 1)


def _similar(
    history: FileHistory, versions: Mapping[str, Sequence[RecordedVersion]], text: str
) -> Iterator[_Candidate]:
    """The files that are gone, and of whose last recorded text half is in `text`."""
    gone = [path for path in versions if not path_exists(Path(path))]
    gone.sort(key=lambda path: versions[path][-1].made_ms, reverse=True)
    for path in gone[:_MOST_COMPARED]:
        last = versions[path][-1]
        similarity = _similarity(text_of(last.version, history.content) or "", text)
        if similarity >= _LEAST_SIMILAR:
            yield _Candidate(path, last, is_moved=True, similarity=min(similarity, 0.99))


def _similarity(one: str, other: str) -> float:
    """The share of the longer text that is lines of both, as git counts it (``-M``)."""
    common = Counter(one.splitlines(keepends=True)) & Counter(other.splitlines(keepends=True))
    same = sum(len(line) * count for line, count in common.items())
    return same / max(len(one), len(other), 1)


def _joined(history: FileHistory, first: FirstText, source: _Candidate) -> FileHistory | None:
    earlier = read_file_history(history.finder, history.path, source.path, first.made_ms)
    wanted = source.version.version.digest
    is_wanted = [one.after is not None and one.after.digest == wanted for one in earlier.changes]
    if True not in is_wanted:
        return None
    count = len(is_wanted) - is_wanted[::-1].index(True)
    earlier = replace(earlier, changes=earlier.changes[:count])
    last = earlier.changes[-1]
    written_ms = milliseconds(last.reply.timestamp) if last.reply else last.made_ms
    if first.made_ms is None and _changed_ms(history.path) < written_ms - _COARSE_CLOCK_MS:
        return None  # the file is older than what it would be a copy of
    move = UnrecordedMove(
        0,
        source.path,
        history.start,
        "same" if source.similarity == 1 else "similar",
        int(source.similarity * 100),
        is_sure=not _is_named_before(history.start, last.made_ms, earlier.sessions),
    )
    return history.after(earlier, move)


def _changed_ms(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return _ALWAYS


def _is_named_before(path: str, before_ms: int, sessions: Sequence[KnownSession]) -> bool:
    """Whether a call before that moment names `path`: the file may have been there already."""
    for session in sessions:
        cwd = Path(follow_links(session.cwd or "/"))
        names = "|".join(re.escape(name) for name in {path, path_from(path, cwd)})
        named = re.compile(rf"(?<![\w./-])(?:\./)?(?:{names})(?![\w/-])")
        for entry in session.entries:
            if milliseconds(entry.timestamp) >= before_ms:
                continue
            match entry:
                case MessageEntry(message=AssistantMessage() as reply):
                    if any(
                        isinstance(value, str) and named.search(value)
                        for call in reply.tool_calls
                        for value in call.arguments.values()
                    ):
                        return True
                case _:
                    pass
    return False
