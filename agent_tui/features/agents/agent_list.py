"""The sessions of all agents on this machine, and when they changed.

Nothing polls what files contain. `AgentList.look` asks the system for the times and sizes of files
and folders, and who holds a lock. A session is read when its file has changed: its beginning and
its end, and of ours what was appended.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from agent_tui.agent.session.opening import was_cut_off
from agent_tui.agent.turn.limit_wait import open_wait
from agent_tui.attachments import without_attachments
from agent_tui.commands.core.short_words import task_title
from agent_tui.features.agents.rows import (
    OURS,
    AgentRow,
    last_line_of,
    newest_first,
    state_of_other,
    state_of_ours,
)
from agent_tui.messages import AssistantMessage, Message, UserMessage
from agent_tui.safe_paths import git_entry, real_path
from agent_tui.safe_text import printable_line
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.sessions.file.writer import RunningSession, running_session
from agent_tui.sessions.importers.discovery import (
    ForeignPlace,
    foreign_places,
    look_at_place,
    read_foreign_end,
    read_foreign_head,
)
from agent_tui.sessions.listing import SessionFile, SessionSummary, session_files
from agent_tui.sessions.newest_entries import newest_entries
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.git.places import git_folders
from agent_tui.tools.git.settings import read_text

_LIST_AGAIN_S = 30.0
"""Seconds after which folders are listed again, for agents that had none before."""

_HOT_S = 3_600.0
"""Files written in the last hour are looked at each time, others in turn."""

_TURNS = 6
"""Number of looks within which each of the others is looked at."""

_REREAD_OF_DATABASE = 20
"""Sessions of a database that are read again when it changes: those that it names first."""

_END_BYTES = 1_000_000
_END_ENTRIES = 100
_BRANCH_MARK = "ref: refs/heads/"


class OwnEnd(NamedTuple):
    """What the last entries of one of our sessions say; see `AgentRow`, `state_of_ours`."""

    last_line: str
    is_cut_off: bool
    waits_for_limit: bool


@dataclass(frozen=True, slots=True)
class _Known:
    """What was read of a session, and of which version of its file.

    `row` is None if it is no session, and `end` is None if it is another agent's.
    """

    size_bytes: int
    mtime_ns: int
    row: AgentRow | None
    end: OwnEnd | None = None


class AgentList:
    """All sessions, kept up to date.

    Its methods block; threads that call them wait for each other.

    Args:
        store: Our sessions, and the formats of others'.
        home: The user's home folder.
        environ: The environment, whose variables may name other folders.
        monotonic: The clock that says when folders are listed again.
    """

    def __init__(
        self,
        store: SessionStore,
        home: Path,
        environ: Mapping[str, str],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._home = home
        self._environ = environ
        self._monotonic = monotonic
        self._own: dict[Path, SessionFile] = {}
        self._foreign: dict[Path, ForeignPlace] = {}
        self._databases: dict[Path, ForeignPlace] = {}
        self._folders: dict[Path, int] = {}
        self._locked: Sequence[Path] = ()
        self._open: dict[Path, RunningSession] = {}
        self._known: dict[Path, _Known] = {}
        self._list_again_s = -1.0
        self._one_at_a_time = threading.Lock()
        self._looks = 0

    def look(self) -> bool:
        """Look whether anything has changed since the last look; reads no session."""
        with self._one_at_a_time:
            return self._look()

    def _look(self) -> bool:
        before = self._state
        self._looks += 1
        is_due = self._list_again_s < self._monotonic()
        if is_due or self._folders != _times(self._folders) or self._look_at_files():
            self._list()
        self._look_at_locks()
        return self._state != before

    @property
    def _state(self) -> tuple[object, ...]:
        return dict(self._own), dict(self._foreign), dict(self._open)

    def rows(self, most: int | None = None) -> list[AgentRow]:
        """The sessions, newest first. Reads those that have changed.

        Args:
            most: Only so many of those that were written last; None for all.
        """
        with self._one_at_a_time:
            return self._rows(most)

    def _rows(self, most: int | None) -> list[AgentRow]:
        wanted = self._newest()[:most]
        self._read_own([place for place in wanted if isinstance(place, SessionFile)])
        for place in wanted:
            if isinstance(place, ForeignPlace):
                self._read_foreign(place)
        branches = _Branches()
        found = (self._row(place.path, branches) for place in wanted)
        return newest_first(row for row in found if row is not None)

    def _newest(self) -> list[SessionFile | ForeignPlace]:
        places = [*self._own.values(), *self._foreign.values()]
        return sorted(places, key=lambda place: place.mtime_ns, reverse=True)

    # Looking

    def _list(self) -> None:
        self._folders = _times(self._folders)
        self._own = {file.path: file for file in self._store.files()}
        self._locked = self._store.locked()
        places = foreign_places(self._home, self._environ, self._store.formats)
        self._foreign = {place.path: self._as_read(place, places) for place in places}
        self._databases = {place.file: place for place in places if place.is_in_database}
        files = [*self._own, *(place.file for place in places)]
        folders = {*_folders_around(files, self._home), self._store.root}
        self._folders = {**_times(folders - self._folders.keys()), **self._folders}
        self._folders = {path: self._folders[path] for path in folders if path in self._folders}
        for gone in self._known.keys() - self._own.keys() - self._foreign.keys():
            del self._known[gone]
        self._list_again_s = self._monotonic() + _LIST_AGAIN_S

    def _as_read(self, place: ForeignPlace, places: Sequence[ForeignPlace]) -> ForeignPlace:
        """`place`; one far down in a database that was read before counts as unchanged."""
        before = self._foreign.get(place.path)
        if not place.is_in_database or before is None:
            return place
        newest = islice((one for one in places if one.file == place.file), _REREAD_OF_DATABASE)
        return place if place in newest else before

    def _look_at_files(self) -> bool:
        """Look at files that may have changed; whether a database has, which names its sessions."""
        hot_ns = time.time_ns() - int(_HOT_S * 1e9)
        turn = self._looks % _TURNS
        own = [
            file
            for number, file in enumerate(self._own.values())
            if file.path in self._open or file.mtime_ns > hot_ns or number % _TURNS == turn
        ]
        for file in own:
            self._replace_own(file)
        files = [place for place in self._foreign.values() if not place.is_in_database]
        for number, place in enumerate(files):
            if place.mtime_ns > hot_ns or number % _TURNS == turn:
                self._replace_foreign(place)
        databases = self._databases.values()
        return any(look_at_place(place.path, place.known) != place for place in databases)

    def _replace_own(self, file: SessionFile) -> None:
        if found := session_files((file.path,)):
            self._own[file.path] = found[0]
        else:
            del self._own[file.path]

    def _replace_foreign(self, place: ForeignPlace) -> None:
        if (found := look_at_place(place.path, place.known)) is not None:
            self._foreign[place.path] = found
        else:
            del self._foreign[place.path]

    def _look_at_locks(self) -> None:
        held = ((path, running_session(path)) for path in self._locked)
        self._open = {path: found for path, found in held if found is not None}

    # Reading

    def _read_own(self, files: Sequence[SessionFile]) -> None:
        stale = [file for file in files if not self._knows(file)]
        if not stale:
            return
        root = (self._store.root,)
        is_unchanged = _times(root).items() <= self._folders.items()
        with closing(self._store.summaries(stale)) as found:
            for file, summary in found:
                end = read_own_end(file.path)
                row = None if summary is None else _row_of_ours(summary, end)
                self._known[file.path] = _Known(file.size_bytes, file.mtime_ns, row, end)
        if is_unchanged:  # what changed there since is the index, which the summaries are stored in
            self._folders |= _times(root)

    def _read_foreign(self, place: ForeignPlace) -> None:
        if self._knows(place):
            return
        file = read_foreign_head(place)
        row = None
        if file is not None:
            end = read_foreign_end(place)
            row = AgentRow(
                agent=file.agent_label,
                format_name=file.agent,
                path=file.path,
                cwd=file.cwd,
                goal=file.title,
                since=file.modified,
                branch=printable_line(end.branch),
                last_line=last_line_of(end.last_text),
                context_tokens=end.context_tokens,
                state=state_of_other(is_done=end.is_done),
                problem=file.problem,
            )
        self._known[place.path] = _Known(place.size_bytes, place.mtime_ns, row)

    def _knows(self, place: SessionFile | ForeignPlace) -> bool:
        known = self._known.get(place.path)
        version = None if known is None else (known.size_bytes, known.mtime_ns)
        return version == (place.size_bytes, place.mtime_ns)

    def _row(self, path: Path, branches: "_Branches") -> AgentRow | None:
        """The row of a session that was read; None if it is none."""
        known = self._known.get(path)
        if known is None or known.row is None:
            return None
        row = known.row
        branch, worktree = branches.at(row.cwd)
        row = replace(row, branch=row.branch or branch, worktree=worktree)
        if known.end is None:
            return row
        running = self._open.get(path)
        state = state_of_ours(
            running.state if running is not None else None,
            is_cut_off=known.end.is_cut_off,
            waits_for_limit=known.end.waits_for_limit,
        )
        if running is None:
            return replace(row, state=state)
        since = datetime.fromtimestamp(running.since_s, UTC)
        return replace(row, state=state, pid=running.pid, since=since)


class _Branches:
    """The branches of folders; each folder is read once."""

    def __init__(self) -> None:
        self._found: dict[Path, tuple[str, str]] = {}

    def at(self, folder: Path) -> tuple[str, str]:
        """The branch that is checked out in `folder`, and the name of its worktree."""
        if folder not in self._found:
            self._found[folder] = branch_at(folder)
        return self._found[folder]


def branch_at(folder: Path) -> tuple[str, str]:
    """The branch in `folder`, and the name of the worktree around it; each may be empty.

    Reads git's files, which may be anything; git does not run.
    """
    if folder == Path():
        return "", ""
    try:
        entry = git_entry(real_path(folder))
        found = git_folders(entry) if entry is not None else None
        if found is None:
            return "", ""
        git, shared = found
        head = read_text(git / "HEAD", follow_links=False)
    except (OSError, ValueError):
        return "", ""
    branch = head.removeprefix(_BRANCH_MARK) if head.startswith(_BRANCH_MARK) else ""
    return printable_line(branch), printable_line(git.name) if git != shared else ""


def read_own_end(path: Path) -> OwnEnd:
    """What the last entries of our session at `path` say. Blocking."""
    newest: list[Entry] = []
    line = ""
    with suppress(OSError):
        for entry in islice(newest_entries(path, _END_BYTES), _END_ENTRIES):
            newest.append(entry)
            if isinstance(entry, MessageEntry) and (line := _line_of(entry.message)):
                break
    return OwnEnd(line, was_cut_off(newest), open_wait(newest[::-1]) is not None)


def _line_of(message: Message) -> str:
    match message:
        case AssistantMessage() if message.tool_calls:
            call = message.tool_calls[-1]
            return printable_line(f"{call.name} {call.subject}".strip())
        case AssistantMessage():
            return last_line_of(message.text)
        case UserMessage():
            return printable_line(f"› {without_attachments(message.text)}")
        case _:
            return ""


def _row_of_ours(summary: SessionSummary, end: OwnEnd) -> AgentRow:
    return AgentRow(
        agent=OURS,
        format_name="",
        id=summary.id,
        path=summary.path,
        cwd=summary.cwd,
        goal=summary.name or task_title(summary.first_prompt),
        since=summary.modified,
        last_line=end.last_line,
        cost_usd=summary.cost_usd or None,
        context_tokens=summary.context_tokens,
    )


def _times(folders: Iterable[Path]) -> dict[Path, int]:
    """When the contents of each of `folders` changed last; those that are gone are left out."""
    found: dict[Path, int] = {}
    for folder in folders:
        with suppress(OSError):
            found[folder] = folder.stat().st_mtime_ns
    return found


def _folders_around(files: Iterable[Path], home: Path) -> set[Path]:
    """The folders of `files`, and those around them inside `home`, in which new ones may appear."""
    found: set[Path] = set()
    for folder in {file.parent for file in files}:
        found.add(folder)
        if folder.is_relative_to(home):
            found.update(each for each in folder.parents if home in each.parents)
    return found
