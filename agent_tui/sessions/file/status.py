"""What is to be known of a session before it is opened, without reading it whole."""

import os
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import SessionError
from agent_tui.file_locks import LockOwner
from agent_tui.regular_files import open_regular_file
from agent_tui.sessions.entries import Header
from agent_tui.sessions.file.lock import SessionInUseError, SessionLock
from agent_tui.sessions.format.codec import UnreadableRecordError, decode_record

_MOST_HEADER_BYTES = 4_000_000
"""The header of a session that ``/compact`` began holds a summary; none comes near this."""


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """A session file as it is now.

    Attributes:
        path: The file.
        cwd: The folder it works in; None where the file does not say.
        has_folder: Whether that folder is there; true where none is named.
        owner: The other program that writes it; None where none does.
    """

    path: Path
    cwd: Path | None
    has_folder: bool
    owner: LockOwner | None


def session_status(path: Path) -> SessionStatus:
    """Look at the session file `path`; a header that cannot be read names no folder. Blocking."""
    folder = _folder(path)
    return SessionStatus(path, folder, folder is None or _is_dir(folder), _owner(path))


def _folder(path: Path) -> Path | None:
    try:
        with open_regular_file(path) as file:
            header = decode_record(file.readline(_MOST_HEADER_BYTES).rstrip(b"\r\n")).value
    except (OSError, UnreadableRecordError):
        return None
    return Path(header.cwd) if isinstance(header, Header) and header.cwd else None


def _is_dir(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except (OSError, ValueError):  # a name too long, a NUL: another program wrote it
        return False


def _owner(path: Path) -> LockOwner | None:
    try:
        SessionLock(path).release()
    except SessionInUseError as error:
        is_this = error.owner.pid == os.getpid() and not error.owner.host
        return None if is_this else error.owner
    except SessionError:
        return None  # the folder cannot be written; opening it for writing will say so
    return None
