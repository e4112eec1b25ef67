"""Open earlier sessions of the present one for writing."""

from collections.abc import Sequence
from pathlib import Path

from agent_tui.sessions.entries import (
    Entry,
)
from agent_tui.sessions.importers.import_session import import_session
from agent_tui.sessions.lineage.chain import (
    KnownSession,
    is_of_another_program,
    read_known,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore


def open_known(session: KnownSession, store: SessionStore, cwd: Path) -> SessionLog:
    """Open `session` for writing; a session of another agent is copied first. Blocking.

    Raises:
        SessionError: It cannot be opened.
    """
    if session.path is None:
        return read_known(session)
    return open_to_continue(str(session.path), session.path, store, cwd)[0]


def open_to_continue(
    ref: str, file: Path | None, store: SessionStore, cwd: Path
) -> tuple[SessionLog, Sequence[Entry]]:
    """Open a session for writing; one of another agent is copied first. Blocking.

    Args:
        ref: As for `SessionStore.open`.
        file: Its file; None if it is unknown.
        store: The stored sessions.
        cwd: The workspace.

    Returns:
        The session, and the entries that were in the file.

    Raises:
        SessionError: It cannot be opened.
    """
    if file is None or not is_of_another_program(file, store.formats):
        log = store.open(ref, cwd)
        return log, log.path_entries()
    copy = import_session(store, file, cwd=cwd)
    log = store.open(str(copy.path), cwd)
    return log, log.entries[: copy.entries]
