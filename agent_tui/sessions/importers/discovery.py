"""Find the sessions that other agents keep on this machine; never writes to them."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from agent_tui.messages import JsonObject
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_text import printable_line
from agent_tui.sessions.file.newest_lines import newest_lines
from agent_tui.sessions.importers.builder import (
    ImportFormat,
    SessionEnd,
    SessionFinder,
    SessionHead,
)
from agent_tui.sessions.importers.fields import as_object, read_json

_HEAD_BYTES = 256 * 1024
"""Bytes of a file searched for its first prompt: Codex begins with long rules."""

_HEAD_LINES = 60
_END_BYTES = 256 * 1024
"""Bytes at the end of a file searched for its last words; an output in it may be long."""

_END_LINES = 200


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A session of another agent, as the beginning of its file describes it.

    `agent` is the name of its format, `agent_label` the agent's usual name. `cwd` is the empty path
    if the file names none. `title` is its name, else the first prompt, one line of at most 200
    characters. `size_bytes` is None for a session in a database. `problem` says why it cannot be
    imported, and is the title then; usually it is empty.
    """

    path: Path
    agent: str
    agent_label: str
    cwd: Path
    title: str
    modified: datetime
    size_bytes: int | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ForeignPlace:
    """Where a session of another agent may be; nothing of it has been read.

    Attributes:
        path: A file, or ``DATABASE/ID``.
        known: Its format, which has a finder.
        file: What changes when the session does: the file, or the database.
        size_bytes: The size of that file.
        mtime_ns: When it was last written.
    """

    path: Path
    known: ImportFormat
    file: Path
    size_bytes: int
    mtime_ns: int

    @property
    def is_in_database(self) -> bool:
        """Whether it is one of several sessions in `file`."""
        return self.path is not self.file


def foreign_places(
    home: Path, environ: Mapping[str, str], formats: Iterable[ImportFormat]
) -> list[ForeignPlace]:
    """Where other agents may have sessions, those that were last written first.

    No session in a file is read. Arguments are those of `foreign_sessions`.
    """
    found = [
        place
        for known in formats
        if known.finder is not None
        for path in known.finder.files(home, environ)
        if (place := look_at_place(path, known)) is not None
    ]
    return sorted(found, key=lambda place: (place.mtime_ns, str(place.path)), reverse=True)


def look_at_place(path: Path, known: ImportFormat) -> ForeignPlace | None:
    """The place at `path` as it is now; None if it is gone."""
    if (status := _status(path)) is not None:
        return ForeignPlace(path, known, path, status.st_size, status.st_mtime_ns)
    database = path.parent
    if (status := _status(database)) is None:
        return None
    changes = _status(database.with_name(f"{database.name}-wal")) or status
    newest_ns = max(status.st_mtime_ns, changes.st_mtime_ns)
    return ForeignPlace(path, known, database, status.st_size, newest_ns)


def _status(path: Path) -> os.stat_result | None:
    """The status of a regular file; None if there is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # ValueError: a path that cannot be one
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def foreign_sessions(
    home: Path,
    environ: Mapping[str, str],
    formats: Iterable[ImportFormat],
) -> list[ForeignFile]:
    """The sessions of other agents, newest first. Only the head of each file is read.

    Files that are unreadable or no sessions are skipped, and so are those of Claude Code's
    subagents.

    Args:
        home: The user's home folder.
        environ: The environment, whose variables may name other folders.
        formats: The formats to search for; those that no agent stores add nothing.
    """
    places = foreign_places(home, environ, formats)
    found = [file for file in map(read_foreign_head, places) if file is not None]
    return sorted(found, key=lambda file: (file.modified, str(file.path)), reverse=True)


def foreign_agents(formats: Iterable[ImportFormat]) -> tuple[str, ...]:
    """The agents whose sessions can be found on this machine, by the names of their formats."""
    return tuple(known.name for known in formats if known.finder is not None)


def read_foreign_head(place: ForeignPlace) -> ForeignFile | None:
    """The session at `place`, as what is beside it and its head describe it; None if it is none."""
    assert place.known.finder is not None
    finder, head = place.known.finder, SessionHead()
    finder.read_place(head, place.path)
    try:
        if not head.is_session:
            _read_lines(head, place.path, finder)
    except OSError:
        return None
    if not head.is_session:
        return None
    return ForeignFile(
        path=place.path,
        agent=place.known.name,
        agent_label=finder.agent,
        cwd=Path(head.cwd),
        title=printable_line(head.problem or head.name or head.prompt),
        modified=head.modified or datetime.fromtimestamp(place.mtime_ns / 1e9, UTC),
        size_bytes=None if place.is_in_database else place.size_bytes,
        problem=head.problem,
    )


def read_foreign_end(place: ForeignPlace) -> SessionEnd:
    """What the last lines of the file at `place` say; nothing for a session in a database."""
    assert place.known.finder is not None
    end = SessionEnd()
    if place.is_in_database:
        return end
    with suppress(OSError):
        for line in islice(newest_lines(place.path, _END_BYTES), _END_LINES):
            with suppress(ValueError):
                place.known.finder.read_end(end, as_object(read_json(line)))
            if end.is_whole:
                break
    return end


def _read_lines(head: SessionHead, path: Path, finder: SessionFinder) -> None:
    for number, line in _head_lines(path):
        finder.read_head(head, number, line)
        if head.is_whole:
            return


def _head_lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """The first lines that are JSON objects and complete within the bytes read."""
    room = _HEAD_BYTES
    with open_regular_file(path) as file:
        for number in range(1, _HEAD_LINES + 1):
            line = file.readline(room)
            room -= len(line)
            if not line or (not line.endswith(b"\n") and room <= 0):
                return
            try:
                value = read_json(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield number, value
