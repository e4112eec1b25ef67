"""A conversation as a whole: its session, those that came before, and others of its project."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from agent_tui.errors import SessionError
from agent_tui.safe_paths import is_file
from agent_tui.sessions.entries import CompactionEntry, Entry, Header
from agent_tui.sessions.format.parse import ParsedSession, id_in_name
from agent_tui.sessions.importers.builder import ImportFormat, Warnings
from agent_tui.sessions.importers.fields import as_object, json_lines
from agent_tui.sessions.importers.formats import detect_format, read_foreign
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.text import repair_text

_MOST_SESSIONS_FOUND = 3
"""Other sessions that one search reads whole."""


@dataclass(frozen=True, slots=True)
class KnownSession:
    """One session of a chain, as it was when it was read; a session in memory has no `path`."""

    header: Header
    path: Path | None
    entries: tuple[Entry, ...]

    @property
    def id(self) -> str:
        """The session's id."""
        return self.header.id

    @property
    def parent(self) -> str:
        """The path or id of the session it goes on from; empty where it names none."""
        return self.header.parent_session or ""

    @property
    def cwd(self) -> str:
        """The folder it works in; empty where the file does not say."""
        return self.header.cwd

    @property
    def begins_compacted(self) -> bool:
        """Whether it goes on from another session that was compacted."""
        return bool(self.parent) and isinstance(next(iter(self.entries), None), CompactionEntry)


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
        session = known_session(log)
        self._known[session.id] = session
        if session.path is not None:
            self._known[str(session.path)] = session

    def parent_of(self, session: KnownSession) -> KnownSession | None:
        """The session that `session` goes on from; None where it cannot be found or read."""
        parent = self._known.get(session.parent) or self._read_parent(session)
        if parent is not None:
            self._known[session.parent] = parent
        return parent

    def compacted_from(self, session: KnownSession) -> KnownSession | None:
        """The session that `session` was compacted from; None where there is none to be read.

        A fork begins with copies of all that was before it, so what it was forked from is passed
        over. It is read anew, because it may have been gone on with, and not kept. Reads files.
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
        return _read(path, self._store) if path is not None else None


@dataclass(frozen=True, slots=True)
class ProjectSessions:
    """The sessions that work in one folder.

    Args:
        store: Where they are.
        cwd: The folder.
    """

    store: SessionStore
    cwd: Path

    def search(self, query: str, apart_from: Set[str]) -> tuple[Sequence[KnownSession], int]:
        """The few sessions that fit `query` best, and how many could not be looked at.

        Args:
            query: Words that all occur.
            apart_from: Ids of sessions that are not wanted.
        """
        hits, late = self.store.search_project(
            query, self.cwd, _MOST_SESSIONS_FOUND + len(apart_from)
        )
        paths = [hit.path for hit in hits if id_in_name(hit.path) not in apart_from]
        read = [(_read(path, self.store), path) for path in paths[:_MOST_SESSIONS_FOUND]]
        late += sum(session is None for session, _ in read)
        return [session for session, _ in read if session and self._has(session)], late

    def named(self, start: str) -> Sequence[KnownSession]:
        """The sessions whose id begins with `start`."""
        paths = chain(self.store.project_files(self.cwd), self.store.explored_files(self.cwd))
        named = [path for path in paths if start and id_in_name(path).startswith(start)]
        read = [_read(path, self.store) for path in named[:_MOST_SESSIONS_FOUND]]
        return [session for session in read if session and self._has(session)]

    def _has(self, session: KnownSession) -> bool:
        """Whether `session` is of this folder: a file may have been put among the others."""
        return session.cwd in ("", repair_text(str(self.cwd)))


class SessionChain:
    """The entries of a session as it is now and of all sessions before it, newest first.

    All entries of a file count, those of branches that were left too: what was said there was
    said, and their ids stay good. Making one costs nothing but what `SessionLog.entries` does
    and belongs to the thread that uses the log; any one thread may then walk it.

    Args:
        log: The present session.
        past: Those before it.
        project: Where else may be looked; None for nowhere.
    """

    def __init__(
        self, log: SessionLog, past: PastSessions, project: ProjectSessions | None = None
    ) -> None:
        self._own = known_session(log)
        self._project = project
        self._walked: set[str] = set()
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
        walked = self._walked = set[str]()
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

    def others_with(self, query: str) -> tuple[Sequence[KnownSession], int]:
        """Other sessions of the project that fit `query`; how many could not be looked at.

        Those of the newest walk through `entries` are not among them. Reads files.
        """
        return self._project.search(query, self._walked) if self._project else ((), 0)

    def others_named(self, start: str) -> Sequence[KnownSession]:
        """The sessions of the project whose id begins with `start`. Reads files."""
        return self._project.named(start) if self._project else ()


def parent_file(parent: str, child: Path | None, store: SessionStore) -> Path | None:
    """Where the session is now that `child` names as `parent`; None where it is gone.

    It is where it was, beside its child, or anywhere in `store`.
    """
    named = Path(parent)
    beside = child.parent if child is not None else store.root
    for path in (beside / named, beside / named.name):
        if is_file(path):
            return path
    wanted_id = id_in_name(named)
    return next((found.path for found in store.list() if found.id == wanted_id), None)


def is_of_another_program(path: Path, formats: Sequence[ImportFormat]) -> bool:
    """Whether `path` is what another program wrote: to be read at most, never to be written.

    Some of it would pass for a badly damaged session of ours. Every line of ours is an object
    with a type; a file that is no JSON at all is for whoever opens it to complain about.

    Args:
        path: The file.
        formats: Those of other agents that can be read.
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


def known_session(log: SessionLog) -> KnownSession:
    """What `log` holds now. For the thread that uses the log."""
    return KnownSession(log.header, log.path, log.entries)


def read_known(session: KnownSession) -> SessionLog:
    """`session` as a log that is not written to a file."""
    parsed = ParsedSession(session.header, session.entries, (), True, True, True)
    return SessionLog(session.path, session.header, None, parsed)


def _read(path: Path, store: SessionStore) -> KnownSession | None:
    """The session at `path`, any agent's; other processes may have it open."""
    try:
        if is_of_another_program(path, store.formats):
            foreign = read_foreign(path, formats=store.formats)
            return KnownSession(foreign.header, path, tuple(foreign.entries))
        return known_session(SessionLog.open(path, read_only=True))
    except SessionError:
        return None
