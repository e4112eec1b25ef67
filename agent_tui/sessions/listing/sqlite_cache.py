"""SQLite files that only cache: private, and thrown away as soon as they are of no use."""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

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
