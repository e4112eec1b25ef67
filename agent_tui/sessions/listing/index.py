"""A cache of session summaries; it may be deleted, broken or locked at any time."""

import os
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter
from pydantic_core import from_json

from agent_tui.sessions.file.chunks import checksum
from agent_tui.sessions.listing.summary import SessionSummary, extend_summary, read_summary

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
"""Another process has it, the disk is full ...: the file itself may be sound."""


def open_database(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """Open the SQLite file at `path`, made with mode 0600 where it is missing.

    Raises:
        OSError, sqlite3.Error: It cannot be opened or made.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    return sqlite3.connect(path, timeout=busy_timeout_s)


def discard_if_broken(path: Path, error: OSError | sqlite3.Error) -> None:
    """Delete the SQLite file at `path` if `error` says that it, not its surroundings, is bad."""
    if isinstance(error, OSError):
        return
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code & 0xFF in _NOT_NOW:
        return
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            path.with_name(path.name + suffix).unlink()


_SCHEMA_VERSION = 5
_BUSY_TIMEOUT_S = 0.5

_Row: TypeAlias = tuple[int, int, int, str]
"""Size, modification time in ns, checksum of the bytes, summary as JSON (empty: no session)."""


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file as it was found in its folder."""

    path: Path
    size_bytes: int
    mtime_ns: int


def session_files(paths: Iterable[Path]) -> list[SessionFile]:
    """`paths` with size and time, newest first; those that vanished are left out."""
    found: list[SessionFile] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        found.append(SessionFile(path, status.st_size, status.st_mtime_ns))
    return sorted(found, key=lambda file: file.mtime_ns, reverse=True)


class SessionIndex:
    """Summaries of session files, read again only when size or modification time changed.

    Of a file that only grew, what is new is read.

    Args:
        path: The SQLite file; made when first needed, in a folder that must exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def summaries(self, files: Iterable[SessionFile]) -> Generator[SessionSummary | None]:
        """The summary of each of `files`, None for what is no session.

        What was read is kept when the iterator ends or is closed; files that are not among
        `files` are forgotten then.
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
                    summary = _read(file, row)
                    fresh[key] = _row(file, summary)
                    yield summary
        finally:
            gone = known.keys() - {os.fsencode(file.path) for file in listed}
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


def _read(file: SessionFile, row: _Row | None) -> SessionSummary | None:
    known = _restore(file.path, row[3]) if row is not None else None
    if row is not None and known is not None and known.size_bytes < file.size_bytes:
        crc = checksum(file.path, known.size_bytes)
        if crc >= 0 and crc == row[2]:
            return extend_summary(known)
    return read_summary(file.path)


def _row(file: SessionFile, summary: SessionSummary | None) -> _Row:
    """What is kept; the file may have grown since it was found, so it counts as it was then."""
    crc = checksum(file.path, summary.size_bytes) if summary else -1
    return file.size_bytes, file.mtime_ns, crc, _dump(summary)


@cache
def _stored_form() -> TypeAdapter[SessionSummary]:
    """How a summary is written and read; made when first needed."""
    return TypeAdapter(SessionSummary)


def _dump(summary: SessionSummary | None) -> str:
    return "" if summary is None else _stored_form().dump_json(summary, exclude={"path"}).decode()


def _restore(file: Path, stored: str) -> SessionSummary | None:
    if not stored:
        return None
    try:
        return _stored_form().validate_python({**from_json(stored), "path": file})
    except (ValueError, TypeError):
        return read_summary(file)
