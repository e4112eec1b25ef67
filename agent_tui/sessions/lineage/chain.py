"""A whole conversation: its session, the earlier ones, and others of its project."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from agent_tui.errors import SessionError
from agent_tui.safe_paths import is_file
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.format.parse import ParsedSession, id_in_name
from agent_tui.sessions.importers.builder import ImportFormat, Warnings
from agent_tui.sessions.importers.fields import as_object, json_lines
from agent_tui.sessions.importers.formats import detect_format, read_foreign
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.text import is_same_path

_MOST_SESSIONS_FOUND = 3
"""Other sessions that one search reads completely."""


class PastSessions:
    """The sessions that a conversation continues; each file is read once. Use one per conversation.

    Args:
        store: Searched for a session that is not at the path its child names.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._known: dict[str, KnownSession] = {}

    def remember(self, log: SessionLog) -> None:
        """Keep the contents of `log`, which the conversation leaves for a child of it.

        So its file need not be read again; a session in memory has none.
        """
        session = snapshot(log)
        self._known[session.id] = session
        if session.path is not None:
            self._known[str(session.path)] = session

    def parent_of(self, session: KnownSession) -> KnownSession | None:
        """The session that `session` continues; None if it is not found or unreadable."""
        parent = self._known.get(session.parent) or self._read_parent(session)
        if parent is not None:
            self._known[session.parent] = parent
        return parent

    def find_parent(self, session: KnownSession) -> KnownSession | None:
        """The session that `session` was compacted from; None if there is no readable one.

        A fork begins with copies of everything before it, so its source is skipped. The session is
        read again, because it may have been continued, and is not cached. Reads files.
        """
        if not session.begins_compacted:
            return None
        first, walked = session.entries[0].id, {session.id}
        parent = self._parent_now(session)
        while parent is not None and parent.id not in walked:
            if all(entry.id != first for entry in parent.entries[:1]):
                return parent
            walked.add(parent.id)
            parent = self._parent_now(parent)
        return None

    def _parent_now(self, session: KnownSession) -> KnownSession | None:
        known = self._known.get(session.parent)
        is_in_memory = known is not None and known.path is None
        return known if is_in_memory else self._read_parent(session)

    def _read_parent(self, session: KnownSession) -> KnownSession | None:
        if not session.parent:
            return None
        path = parent_file(session.parent, session.path, self._store)
        return read_session_at(path, self._store) if path is not None else None


@dataclass(frozen=True, slots=True)
class ProjectSessions:
    """The sessions that work in one folder.

    Args:
        store: The store to search.
        cwd: The folder.
    """

    store: SessionStore
    cwd: Path

    def search(self, query: str, apart_from: Set[str]) -> tuple[Sequence[KnownSession], int]:
        """The best few matches for `query`, and the number of sessions that could not be searched.

        Args:
            query: Words that must all occur.
            apart_from: Ids of sessions to leave out.
        """
        hits, late = self.store.search_project(
            query, self.cwd, _MOST_SESSIONS_FOUND + len(apart_from)
        )
        paths = [hit.path for hit in hits if id_in_name(hit.path) not in apart_from]
        read = [(read_session_at(path, self.store), path) for path in paths[:_MOST_SESSIONS_FOUND]]
        late += sum(session is None for session, _ in read)
        return [session for session, _ in read if session and self._has(session)], late

    def find_by_prefix(self, start: str) -> Sequence[KnownSession]:
        """The sessions whose id begins with `start`."""
        paths = chain(self.store.project_files(self.cwd), self.store.files_of_helpers(self.cwd))
        named = [path for path in paths if start and id_in_name(path).startswith(start)]
        read = [read_session_at(path, self.store) for path in named[:_MOST_SESSIONS_FOUND]]
        return [session for session in read if session and self._has(session)]

    def _has(self, session: KnownSession) -> bool:
        """Whether `session` belongs to this folder: a file may have been put among the others."""
        return not session.cwd or is_same_path(session.cwd, str(self.cwd))


class SessionChain:
    """The entries of a session in its present state and of all earlier ones, newest first.

    All entries of a file count, abandoned branches included, as their ids stay valid. Create it in
    the thread that uses the log; it costs no more than `SessionLog.entries`. Any single thread may
    then iterate over it.

    Args:
        log: The present session.
        past: The earlier sessions.
        project: Other sessions that may be searched; None for none.
    """

    def __init__(
        self, log: SessionLog, past: PastSessions, project: ProjectSessions | None = None
    ) -> None:
        self._own = snapshot(log)
        self._project = project
        self._walked: set[str] = set()
        self._past = past
        self._session_count = 0
        self._missing = ""

    @property
    def session_count(self) -> int:
        """Number of sessions that the newest walk has reached."""
        return self._session_count

    @property
    def missing(self) -> str:
        """The earlier session, as its child names it, whose absence ended the newest walk."""
        return self._missing

    @property
    def reaches_others(self) -> bool:
        """Whether other sessions of the project may be read."""
        return self._project is not None

    def sessions(self) -> Iterator[KnownSession]:
        """The present session, then each that it continues; one is read when it is reached.

        The chain ends at a session that is unreadable or was visited before.
        """
        self._session_count, self._missing = 0, ""
        walked = self._walked = set[str]()
        session: KnownSession | None = self._own
        while session is not None and session.id not in walked:
            walked.add(session.id)
            self._session_count += 1
            yield session
            if not session.parent:
                return
            parent = self._past.parent_of(session)
            if parent is None:
                self._missing = session.parent
            session = parent

    def entries(self) -> Iterator[Entry]:
        """The entries of all `sessions`, newest first.

        A session may begin with copies that have the ids and times of the earlier session. Such a
        copy, equal except for its place in the tree, is yielded instead of the original. A pulled
        entry never stands for one of this clone, whatever id and time it states.
        """
        seen: set[tuple[str, str]] = set()
        seen_own: set[tuple[str, str]] = set()
        for session in self.sessions():
            for entry in reversed(session.entries):
                key = (entry.id, entry.timestamp)
                if key in (seen_own if entry.pulled_from is None else seen):
                    continue
                seen.add(key)
                if entry.pulled_from is None:
                    seen_own.add(key)
                yield entry

    def others_with(self, query: str) -> tuple[Sequence[KnownSession], int]:
        """Other sessions of the project that match `query`, and how many could not be searched.

        Leaves out those of the newest walk through `entries`. Reads files.
        """
        return self._project.search(query, self._walked) if self._project else ((), 0)

    def others_named(self, start: str) -> Sequence[KnownSession]:
        """The sessions of the project whose id begins with `start`. Reads files."""
        return self._project.find_by_prefix(start) if self._project else ()


def parent_file(parent: str, child: Path | None, store: SessionStore) -> Path | None:
    """The present path of the session that `child` names as `parent`; None if it is gone.

    Looks at the named path, beside the child, and in all of `store`.
    """
    named = Path(parent)
    beside = child.parent if child is not None else store.root
    for path in (beside / named, beside / named.name):
        if is_file(path):
            return path
    wanted_id = id_in_name(named)
    return next((found.path for found in store.list() if found.id == wanted_id), None)


def is_of_another_program(path: Path, formats: Sequence[ImportFormat]) -> bool:
    """Whether another program wrote `path`, which may be read but never written.

    Such a file could look like a badly damaged session of ours, whose every line is an object with
    a type. A file that is not JSON at all counts as ours; opening it reports the error.

    Args:
        path: The file.
        formats: The formats of other agents that can be read.
    """
    try:
        return detect_format(path, formats) != "pi"
    except SessionError:
        return _first_value_has_no_type(path)


def _first_value_has_no_type(path: Path) -> bool:
    try:
        for _, value in json_lines(path, Warnings()):
            return "type" not in as_object(value)
    except SessionError:
        pass
    return False


def snapshot(log: SessionLog) -> KnownSession:
    """The present contents of `log`. Call it in the thread that uses the log."""
    return KnownSession(log.header, log.path, log.entries)


def read_known(session: KnownSession) -> SessionLog:
    """`session` as a log without a file."""
    parsed = ParsedSession(session.header, session.entries, (), True, True, True)
    return SessionLog(session.path, session.header, None, parsed)


def read_session_at(path: Path, store: SessionStore) -> KnownSession | None:
    """The session at `path`, of any agent; other processes may have it open.

    None if it cannot be read.
    """
    try:
        if is_of_another_program(path, store.formats):
            foreign = read_foreign(path, formats=store.formats)
            return KnownSession(foreign.header, path, tuple(foreign.entries))
        return snapshot(SessionLog.open(path, read_only=True))
    except SessionError:
        return None
