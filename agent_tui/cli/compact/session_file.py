"""The session that ``agent-tui compact`` works on: ours, or another agent's; only read."""

import os
from pathlib import Path

from agent_tui.errors import SessionError
from agent_tui.safe_paths import path_exists
from agent_tui.sessions.format.parse import ParsedSession
from agent_tui.sessions.importers.builder import ForeignSession
from agent_tui.sessions.importers.formats import detect_format, read_foreign
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore


def open_input(ref: str, written_by: str | None, store: SessionStore, cwd: Path) -> SessionLog:
    """The session `ref` means, read-only: it may be open elsewhere, and is not written to.

    Args:
        ref: A file, from `cwd`; or id, start of an id or name of one of our sessions.
        written_by: The program that wrote the file; None finds out.
        store: Our sessions.
        cwd: Where the person is.

    Raises:
        SessionError: There is none, it cannot be read, or it is of no known format.
    """
    path = _named_path(ref, cwd)
    if path is None:
        return store.open(ref, cwd, read_only=True)
    if not path.is_file():
        what = "a folder" if path.is_dir() else "not a file"
        raise SessionError(f"{path} is {what}.", "Name a session file or the id of a session.")
    found = written_by or detect_format(path)
    if found == "pi":
        return SessionLog.open(path, read_only=True)
    return _as_log(path, read_foreign(path, found))


def _named_path(ref: str, cwd: Path) -> Path | None:
    """What `ref` names on the disk; None where nothing is there: it may be an id or a name."""
    try:
        path = cwd / Path(ref).expanduser()
    except RuntimeError:  # ~ of nobody known
        return None
    return Path(os.path.normpath(path)) if path_exists(path) else None


def _as_log(path: Path, session: ForeignSession) -> SessionLog:
    """A log without a writer, so that a child can name `path` as its parent."""
    parsed = ParsedSession(
        header=session.header,
        entries=session.entries,
        warnings=session.warnings,
        has_header=True,
        ends_clean=True,
        looks_like_session=True,
    )
    return SessionLog(path, session.header, None, parsed, is_read_only=True)
