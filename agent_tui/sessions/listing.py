"""The facts that a list shows of each session, cached in SQLite, and sessions by their chains."""

import os
import os.path
import re
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path, PurePath
from typing import Annotated, TypeAlias, TypeVar

from pydantic import AfterValidator, PlainSerializer, TypeAdapter
from pydantic_core import from_json

from agent_tui.attachments import without_attachments
from agent_tui.messages import AssistantMessage, StoredPath, UserMessage
from agent_tui.safe_text import printable_line
from agent_tui.sessions.entries import (
    CompactionEntry,
    Entry,
    Header,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
)
from agent_tui.sessions.file.chunks import LineChunk, checksum, read_chunks
from agent_tui.sessions.format.codec import UnreadableRecordError, decode_record
from agent_tui.sessions.format.parse import id_in_name
from agent_tui.text import decode_path, encode_path

_USER_ROLE = re.compile(rb'"role"\s*:\s*"user"')
_MESSAGE_MARKS = (b'"type":"message"', b'"type": "message"')
_PULLED_MARK = b'"pulledFrom":"'
_COST = re.compile(rb'"usage":\{[^{}]*"cost":\{[^{}]*"total":([0-9.eE+-]+)')
_MOMENT = re.compile(rb'"timestamp":"([0-9T:.Z-]+)"')
_MOST_TRIES = 8
"""Most lines tried that only look like the wanted kind."""

ValueT = TypeVar("ValueT", str, int)

_StoredFolder: TypeAlias = Annotated[
    Path,
    AfterValidator(lambda folder: Path(decode_path(str(folder)))),
    PlainSerializer(lambda folder: encode_path(str(folder)), when_used="json"),
]


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One session in a list.

    `message_count` counts all messages of the file, including tool results and branches.
    `first_prompt` is one line of at most 200 characters: the first of the conversation, even if a
    session before ``/compact`` has it. `model` is the newest one as ``provider/model``.
    `launch_cwd` is None unless the session works in another folder than the one the program was
    started in. `context_tokens` is the last known size of the context: the provider's count after
    the newest reply, or the size after the newest compaction; 0 if unknown. `origin` is from the
    header; empty for a session that a user made. `pulled_from` says who pushed it, or else from
    which remote; empty for a session that began here. `is_named_here`: an entry of this clone
    names it, or takes its name away, so that names of others don't count. `created` is from the
    header. `cost_usd` is what the requests of this session cost, as far as prices are known; that
    of the sessions that ``/compact`` ended is included, and that of pulled or copied messages is
    not.
    """

    id: str
    path: Path
    cwd: _StoredFolder
    name: str
    first_prompt: str
    message_count: int
    modified: datetime
    model: str
    parent_session: StoredPath | None
    size_bytes: int
    launch_cwd: _StoredFolder | None
    context_tokens: int
    origin: str = ""
    pulled_from: str = ""
    is_named_here: bool = False
    created: str = ""
    cost_usd: float = 0.0


def read_summary(path: Path) -> SessionSummary | None:
    """Summarise the session file at `path`; None if it cannot be read or is no session.

    The whole file is read, a few megabytes at a time, as a name may be anywhere in it.
    """
    try:
        chunks = read_chunks(path)
        first = next(chunks, LineChunk(b"", 0))
        header = _header(first.data)
        found = _blank(path, header or Header(id=id_in_name(path), cwd=""))
        found = _with_lines(found, first)
        for chunk in chunks:
            found = _with_lines(found, chunk)
        return _with_date(found) if header is not None or found.first_prompt else None
    except OSError:
        return None


def extend_summary(known: SessionSummary) -> SessionSummary | None:
    """`known` updated with what was appended to its file; None if it is unreadable.

    The file must still begin with the `size_bytes` bytes that were read, whole lines.
    """
    try:
        found = known
        for chunk in read_chunks(known.path, known.size_bytes):
            found = _with_lines(found, chunk)
        return _with_date(found)
    except OSError:
        return None


def _blank(path: Path, header: Header) -> SessionSummary:
    return SessionSummary(
        id=header.id,
        path=path,
        cwd=Path(header.cwd),
        name="",
        first_prompt=printable_line(header.first_prompt or ""),
        message_count=0,
        modified=datetime.fromtimestamp(0, UTC),
        model=_model(header.provider, header.model_id),
        parent_session=header.parent_session,
        size_bytes=0,
        launch_cwd=Path(header.launch_cwd) if header.launch_cwd else None,
        context_tokens=0,
        origin=header.origin or "",
        pulled_from=printable_line(header.pulled_from.name) if header.pulled_from else "",
        created=header.timestamp,
    )


def _with_lines(before: SessionSummary, chunk: LineChunk) -> SessionSummary:
    """`before` updated with the lines of `chunk`, which follow it."""
    data = chunk.data
    own_name = name = _newest(data, (b'"session_info"',), _name, without=_PULLED_MARK)
    if own_name is None and before.pulled_from and not before.is_named_here:
        name = _newest(data, (b'"session_info"',), _name)
    model = _newest(data, (b'"model_change"',), _model_after)
    tokens = _newest(data, (b'"usage"', b'"tokensAfter"'), _tokens)
    return replace(
        before,
        name=before.name if name is None else name,
        first_prompt=before.first_prompt or _first_prompt(data),
        message_count=before.message_count + sum(map(data.count, _MESSAGE_MARKS)),
        model=before.model if model is None else model,
        size_bytes=before.size_bytes + chunk.size_bytes,
        context_tokens=before.context_tokens if tokens is None else tokens,
        is_named_here=before.is_named_here or own_name is not None,
        cost_usd=before.cost_usd + sum(_costs(data, before)),
    )


def _costs(data: bytes, summary: SessionSummary) -> Iterator[float]:
    """What each request cost that is recorded in `data`; see `own_usage` for those left out."""
    for found in _COST.finditer(data):
        line = _line_around(data, found.start())
        is_header = line.startswith(b'{"type":"session"')
        is_first = line.startswith(b'{"type":"compaction"') and b'"parentId":null' in line
        is_copied = (at := _MOMENT.search(line)) is not None and at[1].decode() < summary.created
        is_elsewhere = is_first or _PULLED_MARK in line  # the header has the first compaction's
        if is_header or not (is_elsewhere or (summary.parent_session and is_copied)):
            with suppress(ValueError):
                yield float(found[1])


def _with_date(found: SessionSummary) -> SessionSummary:
    modified = datetime.fromtimestamp(found.path.stat().st_mtime, UTC)
    return replace(found, modified=modified)


def _header(data: bytes) -> Header | None:
    value = _read(_line_around(data, 0))
    return value if isinstance(value, Header) else None


def _first_prompt(data: bytes) -> str:
    for _, found in zip(range(_MOST_TRIES), _USER_ROLE.finditer(data), strict=False):
        entry = _read(_line_around(data, found.start()))
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
            return prompt_line(entry.message)
    return ""


def prompt_line(message: UserMessage) -> str:
    """What the user typed, on one line."""
    return printable_line(without_attachments(message.text))


def _newest(
    data: bytes,
    marks: Sequence[bytes],
    read: Callable[[Entry], ValueT | None],
    without: bytes = b"",
) -> ValueT | None:
    """The result of `read` for the newest usable line with one of `marks`, and not `without`."""
    end, tries = len(data), 0
    while tries < _MOST_TRIES:
        newest = -1
        for mark in marks:  # later marks need only be newer than this, which saves bytes to search
            newest = max(newest, data.rfind(mark, max(newest, 0), end))
        if newest < 0:
            return None
        end = newest
        line = _line_around(data, end)
        if without and without in line:
            continue
        tries += 1
        entry = _read(line)
        value = None if entry is None or isinstance(entry, Header) else read(entry)
        if value is not None:
            return value
    return None


def _name(entry: Entry) -> str | None:
    return entry.name or "" if isinstance(entry, SessionInfoEntry) else None


def _model_after(entry: Entry) -> str | None:
    return _model(entry.provider, entry.model_id) if isinstance(entry, ModelChangeEntry) else None


def _tokens(entry: Entry) -> int | None:
    match entry:
        case MessageEntry(message=AssistantMessage(usage=usage)) if not usage.is_estimate:
            return usage.context_tokens or None
        case CompactionEntry(tokens_after=tokens):
            return tokens or None
        case _:
            return None


def _model(provider: str, model_id: str) -> str:
    return f"{provider}/{model_id}" if provider else model_id


def _line_around(data: bytes, position: int) -> bytes:
    start = data.rfind(b"\n", 0, position) + 1
    end = data.find(b"\n", position)
    return data[start : end if end >= 0 else len(data)]


def _read(line: bytes) -> Header | Entry | None:
    try:
        return decode_record(line).value
    except UnreadableRecordError:
        return None


_NOT_NOW = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
    }
)
"""Another process has it, the disk is full, and so on: the file itself may be fine."""


def open_database(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """Open the SQLite file at `path`; creates it with mode 0600 if it is missing.

    Raises:
        OSError, sqlite3.Error: It cannot be opened or made.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    return sqlite3.connect(path, timeout=busy_timeout_s)


def discard_if_broken(path: Path, error: OSError | sqlite3.Error) -> None:
    """Delete the SQLite file at `path` if `error` means that the file itself is damaged."""
    if isinstance(error, OSError):
        return
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code & 0xFF in _NOT_NOW:
        return
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            path.with_name(path.name + suffix).unlink()


_SCHEMA_VERSION = 10
_BUSY_TIMEOUT_S = 0.5

_Row: TypeAlias = tuple[int, int, int, str]
"""Size, modification time in ns, checksum of the bytes, summary as JSON (empty: no session)."""


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file as found in its folder."""

    path: Path
    size_bytes: int
    mtime_ns: int


def session_files(paths: Iterable[Path]) -> list[SessionFile]:
    """`paths` with size and time, newest first; files that have vanished are left out."""
    found: list[SessionFile] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        found.append(SessionFile(path, status.st_size, status.st_mtime_ns))
    return sorted(found, key=lambda file: file.mtime_ns, reverse=True)


class SessionIndex:
    """Caches summaries of session files, read again only if size or modification time changed.

    If a file only grew, only the new part is read.

    Args:
        path: The SQLite file; created when first needed, in a folder that must exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def summaries(
        self, files: Iterable[SessionFile], *, is_all: bool = True
    ) -> Generator[SessionSummary | None]:
        """Yield the summary of each of `files`, or None for a file that is no session.

        New summaries are stored when the iterator ends or is closed. If these are all files, those
        that are gone are then forgotten.
        """
        listed = list(files)
        known = self._load()
        fresh: dict[bytes, _Row] = {}
        try:
            for file in listed:
                key = os.fsencode(file.path)
                row = known.get(key)
                if row is not None and row[:2] == (file.size_bytes, file.mtime_ns):
                    yield _restore(file.path, row[3])
                else:
                    summary = _bring_up_to_date(file, row)
                    fresh[key] = _row(file, summary)
                    yield summary
        finally:
            listed_keys = {os.fsencode(file.path) for file in listed}
            gone = known.keys() - listed_keys if is_all else set[bytes]()
            if fresh or gone:
                self._store(fresh, gone)

    def _load(self) -> dict[bytes, _Row]:
        try:
            with closing(self._connect()) as database:
                rows = database.execute("SELECT path, size, mtime_ns, crc, summary FROM sessions")
                return {path: (size, when, crc, text) for path, size, when, crc, text in rows}
        except (OSError, sqlite3.Error) as error:
            discard_if_broken(self._path, error)
            return {}

    def _store(self, fresh: dict[bytes, _Row], gone: set[bytes]) -> None:
        changed = [(key, *row) for key, row in fresh.items()]
        with suppress(sqlite3.Error, OSError), closing(self._connect()) as database, database:
            database.executemany("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?)", changed)
            database.executemany("DELETE FROM sessions WHERE path = ?", [(key,) for key in gone])

    def _connect(self) -> sqlite3.Connection:
        database = open_database(self._path, _BUSY_TIMEOUT_S)
        try:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version != _SCHEMA_VERSION:
                with database:
                    database.execute("DROP TABLE IF EXISTS sessions")
                    database.execute(
                        "CREATE TABLE sessions (path BLOB PRIMARY KEY, size INTEGER NOT NULL,"
                        " mtime_ns INTEGER NOT NULL, crc INTEGER NOT NULL, summary TEXT NOT NULL)"
                    )
                    database.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        except sqlite3.Error:
            database.close()
            raise
        return database


def _bring_up_to_date(file: SessionFile, row: _Row | None) -> SessionSummary | None:
    known = _restore(file.path, row[3]) if row is not None else None
    if row is not None and known is not None and known.size_bytes < file.size_bytes:
        crc = checksum(file.path, known.size_bytes)
        if crc >= 0 and crc == row[2]:
            return extend_summary(known)
    return read_summary(file.path)


def _row(file: SessionFile, summary: SessionSummary | None) -> _Row:
    """The row to store, with the size at the time of listing, as the file may have grown since."""
    crc = checksum(file.path, summary.size_bytes) if summary else -1
    return file.size_bytes, file.mtime_ns, crc, _dump(summary)


@cache
def _summary_adapter() -> TypeAdapter[SessionSummary]:
    """The adapter that serializes summaries; created when first needed."""
    return TypeAdapter(SessionSummary)


def _dump(summary: SessionSummary | None) -> str:
    return (
        "" if summary is None else _summary_adapter().dump_json(summary, exclude={"path"}).decode()
    )


def _restore(file: Path, stored: str) -> SessionSummary | None:
    if not stored:
        return None
    try:
        return _summary_adapter().validate_python({**from_json(stored), "path": file})
    except (ValueError, TypeError):
        return read_summary(file)


MOST_GUIDES = 6
"""Deeper sessions are shown at this depth, as the width is limited."""


@dataclass(frozen=True, slots=True)
class LineageRow:
    """One line of the list.

    `depth` counts the sessions before it in its chain. `is_last`: no row further down continues the
    same session. `guides` are lines drawn from a session to those that continue it, three
    characters for each of at most six levels. `newest` is when the chain was last written.
    """

    summary: SessionSummary
    depth: int
    is_last: bool
    guides: str
    newest: datetime


def lineage_rows(sessions: Sequence[SessionSummary]) -> list[LineageRow]:
    """Each of `sessions` once, below the one it continues, the newest chain first.

    Chains are sorted by the last write in all of them, and so are branches. A session whose parent
    is not among `sessions` begins a chain. If files name each other in a circle, the oldest begins
    the chain.
    """
    numbers = range(len(sessions))
    newest_first = sorted(
        numbers, key=lambda one: (sessions[one].modified, sessions[one].id, one), reverse=True
    )
    parents = _parents(sessions, newest_first)
    children: dict[int, list[int]] = {}
    for number in numbers:
        if number in parents:
            children.setdefault(parents[number], []).append(number)
    newest = _newest_below(sessions, parents, newest_first)

    def by_activity(number: int) -> tuple[datetime, str]:
        return newest[number], sessions[number].id

    roots = [number for number in numbers if number not in parents]
    rows: list[LineageRow] = []
    for root in sorted(roots, key=by_activity, reverse=True):
        waiting = [(root, 0, True, "")]
        while waiting:
            number, depth, is_last, stem = waiting.pop()
            guides = stem + ("└─ " if is_last else "├─ ") if depth else ""
            rows.append(LineageRow(sessions[number], depth, is_last, guides, newest[root]))
            below = stem + ("   " if is_last else "│  ") if depth else ""
            below = below[-3 * (MOST_GUIDES - 1) :]
            oldest_first = sorted(children.get(number, ()), key=by_activity)
            waiting += [(child, depth + 1, at == 0, below) for at, child in enumerate(oldest_first)]
    return rows


def _parents(sessions: Sequence[SessionSummary], newest_first: Sequence[int]) -> dict[int, int]:
    """The number of each session's parent; none for those that begin a chain."""
    known = _Known(sessions)
    parents: dict[int, int] = {}
    towards_first = list(range(len(sessions)))

    def first_of_chain(number: int) -> int:
        while (above := towards_first[number]) != number:
            towards_first[number] = towards_first[above]  # shortens the path for later lookups
            number = above
        return number

    for number in newest_first:
        parent = known.parent_of(number)
        if parent is not None and first_of_chain(parent) != number:
            parents[number] = towards_first[number] = parent
    return parents


class _Known:
    """Finds a session by the path or id that its child names."""

    def __init__(self, sessions: Sequence[SessionSummary]) -> None:
        self._sessions = sessions
        self._by_path = {str(found.path): number for number, found in enumerate(sessions)}
        self._by_id: dict[str, list[int]] = {}
        for number, found in enumerate(sessions):
            self._by_id.setdefault(found.id, []).append(number)

    def parent_of(self, number: int) -> int | None:
        child = self._sessions[number]
        named = child.parent_session
        if not named:
            return None
        folder = child.path.parent
        path = PurePath(named)
        for place in (folder / path, folder / path.name):
            found = self._by_path.get(os.path.normpath(place))
            if found is not None:
                return found if found != number else None
        same_id = self._by_id.get(id_in_name(path)) or self._by_id.get(named, [])
        others = [found for found in same_id if found != number]
        # Of several copies of a session, the one beside its child is meant.
        others.sort(key=lambda found: self._sessions[found].path.parent != folder)
        return others[0] if others else None


def _newest_below(
    sessions: Sequence[SessionSummary], parents: Mapping[int, int], newest_first: Sequence[int]
) -> dict[int, datetime]:
    """When each session, or one that continues it, was last written."""
    newest: dict[int, datetime] = {}
    for number in newest_first:
        above: int | None = number
        while above is not None and above not in newest:  # a newer one has updated all above it
            newest[above] = sessions[number].modified
            above = parents.get(above)
    return newest
