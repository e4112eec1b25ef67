"""A conversation as a whole: its session, the one that came before, and so on to the first."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import SessionError
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.importers.builder import Warnings
from agent_tui.sessions.importers.fields import as_object
from agent_tui.sessions.importers.formats import detect_format, read_foreign
from agent_tui.sessions.importers.json_files import json_lines
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore


@dataclass(frozen=True, slots=True)
class KnownSession:
    """One session of a chain; `parent` is the path or id it names, empty where it has none."""

    id: str
    path: Path | None
    entries: tuple[Entry, ...]
    parent: str


class PastSessions:
    """The sessions a conversation goes on from, each file read once. One for a conversation.

    Args:
        store: Where a session is looked for that is no longer where its child says.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._known: dict[str, KnownSession] = {}

    def remember(self, log: SessionLog) -> None:
        """Keep what `log` holds now, which the conversation leaves to go on in a child of it.

        Its file need not be read again; a session that lives in memory only has none.
        """
        session = _session_of(log)
        self._known[session.id] = session
        if session.path is not None:
            self._known[str(session.path)] = session

    def parent_of(self, session: KnownSession) -> KnownSession | None:
        """The session that `session` goes on from; None where it cannot be found or read."""
        known = self._known.get(session.parent)
        if known is None:
            path = parent_file(session.parent, session.path, self._store)
            known = _read(path) if path is not None else None
            if known is not None:
                self._known[session.parent] = known
        return known


class SessionChain:
    """The entries of a session as it is now and of all sessions before it, newest first.

    All entries of a file count, those of branches that were left too: what was said there was
    said, and their ids stay good. Making one costs nothing but what `SessionLog.entries` does
    and belongs to the thread that uses the log; any one thread may then walk it.

    Args:
        log: The present session.
        past: Those before it.
    """

    def __init__(self, log: SessionLog, past: PastSessions) -> None:
        self._own = _session_of(log)
        self._past = past
        self._session_count = 0
        self._missing = ""

    @property
    def session_count(self) -> int:
        """How many sessions the newest walk has come to so far."""
        return self._session_count

    @property
    def missing(self) -> str:
        """The earlier session, as its child names it, that ended the newest walk too soon."""
        return self._missing

    def entries(self) -> Iterator[Entry]:
        """Walk the chain; an earlier session is read when the walk comes to it.

        The tail that a session is begun with has the ids and times it had in the one before;
        such a copy, which is like its original but for its place in the tree, is given and the
        original is not. The chain ends where a session cannot be read or comes a second time.
        """
        self._session_count, self._missing = 0, ""
        seen: set[tuple[str, str]] = set()
        walked: set[str] = set()
        session: KnownSession | None = self._own
        while session is not None and session.id not in walked:
            walked.add(session.id)
            self._session_count += 1
            for entry in reversed(session.entries):
                key = (entry.id, entry.timestamp)
                if key not in seen:
                    seen.add(key)
                    yield entry
            if not session.parent:
                return
            parent = self._past.parent_of(session)
            if parent is None:
                self._missing = session.parent
            session = parent


def parent_file(parent: str, child: Path | None, store: SessionStore) -> Path | None:
    """Where the session is now that `child` names as `parent`; None where it is gone.

    It is where it was, beside its child, or anywhere in `store`.
    """
    named = Path(parent)
    beside = child.parent if child is not None else store.root
    for path in (beside / named, beside / named.name):
        if _is_file(path):
            return path
    wanted_id = named.stem.rpartition("_")[2]
    return next((found.path for found in store.list() if found.id == wanted_id), None)


def is_of_another_program(path: Path) -> bool:
    """Whether `path` is what another program wrote: to be read at most, never to be written.

    Some of it would pass for a badly damaged session of ours. Every line of ours is an object
    with a type; a file that is no JSON at all is for whoever opens it to complain about.
    """
    try:
        return detect_format(path) != "pi"
    except SessionError:
        return _first_value_has_no_type(path)


def _first_value_has_no_type(path: Path) -> bool:
    try:
        for _, value in json_lines(path, Warnings()):
            return "type" not in as_object(value)
    except SessionError:
        pass
    return False


def _session_of(log: SessionLog) -> KnownSession:
    return KnownSession(log.header.id, log.path, log.entries, log.header.parent_session or "")


def _read(path: Path) -> KnownSession | None:
    """The session at `path`, any agent's; other processes may have it open."""
    try:
        if is_of_another_program(path):
            foreign = read_foreign(path)
            parent = foreign.header.parent_session or ""
            return KnownSession(foreign.header.id, path, foreign.entries, parent)
        return _session_of(SessionLog.open(path, read_only=True))
    except SessionError:
        return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, a NUL: another program wrote it
        return False
