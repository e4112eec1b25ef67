"""A cache of session summaries; it may be deleted, broken or locked at any time."""

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import TypeAlias, cast

from agent_tui.sessions.summary import SessionSummary, read_summary

_SCHEMA_VERSION = 1
_BUSY_TIMEOUT_S = 0.5

_Row: TypeAlias = tuple[int, int, str]
"""Size, modification time in ns, summary as JSON (empty: not a session)."""


class SessionIndex:
    """Summaries of session files, read again only when size or modification time changed.

    Args:
        path: The SQLite file; made when first needed, in a folder that must exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def summaries(self, files: Iterable[Path]) -> list[SessionSummary]:
        """The summaries of `files` that are sessions; files that vanish meanwhile are left out."""
        known = self._load()
        present: dict[bytes, _Row] = {}
        found: list[SessionSummary] = []
        for file in files:
            try:
                status = file.stat()
            except OSError:
                continue
            key = os.fsencode(file)
            row = known.get(key)
            if row is None or row[:2] != (status.st_size, status.st_mtime_ns):
                summary = read_summary(file)
                row = (status.st_size, status.st_mtime_ns, _dump(summary))
            else:
                summary = _restore(file, row[2])
            present[key] = row
            if summary is not None:
                found.append(summary)
        if present != known:
            self._store(known, present)
        return found

    def _load(self) -> dict[bytes, _Row]:
        try:
            with closing(self._connect()) as database:
                rows = database.execute("SELECT path, size, mtime_ns, summary FROM sessions")
                return {path: (size, mtime_ns, summary) for path, size, mtime_ns, summary in rows}
        except sqlite3.OperationalError:
            return {}
        except sqlite3.DatabaseError:
            self._discard()
            return {}
        except OSError:
            return {}

    def _store(self, known: dict[bytes, _Row], present: dict[bytes, _Row]) -> None:
        changed = [(key, *row) for key, row in present.items() if known.get(key) != row]
        gone = [(key,) for key in known.keys() - present.keys()]
        with suppress(sqlite3.Error, OSError), closing(self._connect()) as database, database:
            database.executemany("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?)", changed)
            database.executemany("DELETE FROM sessions WHERE path = ?", gone)

    def _connect(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        database = sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S)
        try:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version != _SCHEMA_VERSION:
                with database:
                    database.execute("DROP TABLE IF EXISTS sessions")
                    database.execute(
                        "CREATE TABLE sessions (path BLOB PRIMARY KEY, size INTEGER NOT NULL,"
                        " mtime_ns INTEGER NOT NULL, summary TEXT NOT NULL)"
                    )
                    database.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _discard(self) -> None:
        with suppress(OSError):
            self._path.unlink()


def _dump(summary: SessionSummary | None) -> str:
    if summary is None:
        return ""
    return json.dumps(
        [
            summary.id,
            str(summary.cwd),
            summary.name,
            summary.first_prompt,
            summary.message_count,
            summary.modified.isoformat(),
            summary.model,
            summary.parent_session,
            summary.size_bytes,
            str(summary.launch_cwd) if summary.launch_cwd else None,
        ]
    )


def _restore(file: Path, stored: str) -> SessionSummary | None:
    if not stored:
        return None
    try:
        values = cast(
            "tuple[str, str, str, str, int, str, str, str | None, int, str | None]",
            json.loads(stored),
        )
        session_id, cwd, name, prompt, count, modified, model, parent, size, launch = values
        return SessionSummary(
            id=session_id,
            path=file,
            cwd=Path(cwd),
            name=name,
            first_prompt=prompt,
            message_count=count,
            modified=datetime.fromisoformat(modified),
            model=model,
            parent_session=parent,
            size_bytes=size,
            launch_cwd=Path(launch) if launch else None,
        )
    except (ValueError, TypeError):
        return read_summary(file)
