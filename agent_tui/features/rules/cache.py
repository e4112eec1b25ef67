"""The corrections in session files, stored so that each version of a file is read once."""

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter

from agent_tui.features.rules.reading import SaidSentences, read_corrections
from agent_tui.sessions.entries import Entry, Header
from agent_tui.sessions.file.chunks import read_chunks
from agent_tui.sessions.format.codec import UnreadableRecordError, decode_record
from agent_tui.sessions.importers.import_session import IMPORTED, import_source
from agent_tui.sessions.listing import SessionFile, discard_if_broken, open_database

_VERSION = 1
"""Raise it when `read_corrections` finds something else in the same file."""

_BUSY_TIMEOUT_S = 0.5
_STORED_AT_ONCE = 50
_SPOKEN = re.compile(rb'"role"\s*:\s*"(?:user|assistant)"')
_HEAD_BYTES = 400
"""A message's role is among the first bytes of its line."""

_IMPORT_MARK = f'"{IMPORTED}"'.encode()

_Found: TypeAlias = tuple[str, SaidSentences]
"""The agent that the session was imported from, and what the user said."""


class CorrectionCache:
    """Reads session files, or what is stored about their present versions.

    Args:
        path: The SQLite file; may be deleted at any time. Its folder must exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(
        self, files: Iterable[SessionFile], is_cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Path, str, SaidSentences]]:
        """Yield the path of each file, the agent it was imported from, and what the user said.

        Unreadable files are left out. Ends early if `is_cancelled`; what was read stays stored.
        """
        known = self._load()
        fresh: dict[SessionFile, _Found] = {}
        try:
            for file in files:
                if is_cancelled():
                    return
                found = known.get((os.fsencode(file.path), file.size_bytes, file.mtime_ns))
                if found is None and (found := _read_file(file.path)) is not None:
                    fresh[file] = found
                if len(fresh) >= _STORED_AT_ONCE:
                    self._store(fresh)
                    fresh = {}
                if found is not None:
                    yield (file.path, *found)
        finally:
            if fresh:
                self._store(fresh)

    def forget_missing(self, files: Iterable[Path]) -> None:
        """Remove what is stored about sessions that are not among `files`, all that exist."""
        present = {os.fsencode(file) for file in files}
        with suppress(sqlite3.Error, OSError), closing(self._connect()) as database, database:
            stored = {path for (path,) in database.execute("SELECT path FROM corrections")}
            gone = [(path,) for path in stored - present]
            database.executemany("DELETE FROM corrections WHERE path = ?", gone)

    def _load(self) -> dict[tuple[bytes, int, int], _Found]:
        query = "SELECT path, size, mtime_ns, imported_from, said FROM corrections"
        try:
            with closing(self._connect()) as database:
                return {
                    (path, size, mtime_ns): (imported_from, _stored_form().validate_json(said))
                    for path, size, mtime_ns, imported_from, said in database.execute(query)
                }
        except (OSError, sqlite3.Error) as error:
            discard_if_broken(self._path, error)
        except ValueError:
            with suppress(OSError):
                self._path.unlink()
        return {}

    def _store(self, fresh: dict[SessionFile, _Found]) -> None:
        rows = [
            (
                os.fsencode(file.path),
                file.size_bytes,
                file.mtime_ns,
                imported_from,
                _stored_form().dump_json(said).decode(),
            )
            for file, (imported_from, said) in fresh.items()
        ]
        with suppress(sqlite3.Error, OSError), closing(self._connect()) as database, database:
            database.executemany("INSERT OR REPLACE INTO corrections VALUES (?, ?, ?, ?, ?)", rows)

    def _connect(self) -> sqlite3.Connection:
        database = open_database(self._path, _BUSY_TIMEOUT_S)
        try:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version != _VERSION:
                with database:
                    database.execute("DROP TABLE IF EXISTS corrections")
                    database.execute(
                        "CREATE TABLE corrections (path BLOB PRIMARY KEY, size INTEGER NOT NULL,"
                        " mtime_ns INTEGER NOT NULL, imported_from TEXT NOT NULL,"
                        " said TEXT NOT NULL)"
                    )
                    database.execute(f"PRAGMA user_version = {_VERSION}")
        except sqlite3.Error:
            database.close()
            raise
        return database


@cache
def _stored_form() -> TypeAdapter[SaidSentences]:
    """The adapter that serializes what was said; created when first needed."""
    return TypeAdapter(SaidSentences)


def _read_file(path: Path) -> _Found | None:
    """What the user said in the session at `path`; None if it cannot be read."""
    entries: list[Entry] = []
    marks: list[Entry] = []
    try:
        for chunk in read_chunks(path):
            for line in chunk.data.split(b"\n"):
                is_mark = _IMPORT_MARK in line[:_HEAD_BYTES]
                if is_mark or _SPOKEN.search(line[:_HEAD_BYTES]):
                    value = _decode(line)
                    if value is not None:
                        (marks if is_mark else entries).append(value)
    except OSError:
        return None
    return import_source(marks), read_corrections(entries)


def _decode(line: bytes) -> Entry | None:
    try:
        value = decode_record(line).value
    except UnreadableRecordError:
        return None
    return None if isinstance(value, Header) else value
