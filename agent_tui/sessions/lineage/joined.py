"""A session and those it was compacted from as one tree; continue or copy it at any place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from itertools import takewhile
from operator import itemgetter
from pathlib import Path

from agent_tui.attachments import without_attachments
from agent_tui.config import Durability
from agent_tui.errors import SessionError
from agent_tui.messages import UserMessage
from agent_tui.safe_text import printable_line
from agent_tui.sessions.entries import (
    Entry,
    Header,
    LabelEntry,
    MessageEntry,
    SessionInfoEntry,
    leaf_of,
    milliseconds,
    timestamp_after,
)
from agent_tui.sessions.lineage.chain import PastSessions
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.sessions.log import SessionLog, name_of
from agent_tui.sessions.store import SessionStore


def fork_session(
    source: SessionLog,
    leaf_id: str | None,
    store: SessionStore | None,
    *,
    cwd: Path,
    launch_cwd: Path | None = None,
    durability: Durability = "entry",
    origin: str = "",
) -> SessionLog:
    """A new session with the path to `leaf_id` in `source`, which may be open read-only.

    The entries keep their ids and times, so that edits and compactions among them stay valid: the
    model sees what it saw there. The name and the labels of copied entries are kept. The file
    appears complete or not at all.

    Args:
        source: The session to copy.
        leaf_id: The last entry to copy; None for none.
        store: The store for the file; None for a session in memory only.
        cwd: The folder of the new session.
        launch_cwd: Where the program was started, if it works elsewhere.
        durability: The durability of the new session.
        origin: What makes it; empty for the user.

    Raises:
        SessionError: There is no such entry, or the file cannot be written.
    """
    path = path_to(source.entries, leaf_id, source.header.id)
    before = source.header
    header = Header(
        timestamp=timestamp_after(milliseconds(entry.timestamp) for entry in path),
        cwd=str(cwd),
        provider=before.provider,
        model_id=before.model_id,
        base_url=before.base_url,
        thinking_level=before.thinking_level,
        parent_session=str(source.path) if source.path else before.id,
        compaction=before.compaction and before.compaction.model_copy(update={"spent": ()}),
        launch_cwd=str(launch_cwd) if launch_cwd else None,
        origin=origin or None,
        first_prompt=before.first_prompt,
    )
    file = store.create(header).path if store is not None else None
    entries = (*path, *_missing_labels(source.entries, path), *_missing_name(source, path))
    if not entries:
        return SessionLog.create(file, header, durability)
    return SessionLog.write(file, header, entries, durability)


def path_to(
    entries: Sequence[Entry], leaf_id: str | None, session_id: str = ""
) -> tuple[Entry, ...]:
    """The entries from the root to `leaf_id`, itself included; none for None.

    Args:
        entries: All entries of a session.
        leaf_id: The last entry wanted.
        session_id: Named in the error.

    Raises:
        SessionError: There is no such entry.
    """
    by_id = {entry.id: entry for entry in entries}
    if leaf_id is not None and leaf_id not in by_id:
        raise SessionError(f"Session {session_id} has no entry {leaf_id}.")
    upward: list[Entry] = []
    while leaf_id is not None:
        upward.append(by_id[leaf_id])
        leaf_id = by_id[leaf_id].parent_id
    return tuple(reversed(upward))


def labels_of(entries: Sequence[Entry]) -> dict[str, str]:
    """The label of each entry that has one, by its id; the newest label counts.

    Others label only what they wrote, and only until it is labelled here.
    """
    own = {entry.id for entry in entries if entry.pulled_from is None}
    own |= {e.target_id for e in entries if isinstance(e, LabelEntry) and e.pulled_from is None}
    labels: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, LabelEntry) and not (entry.pulled_from and entry.target_id in own):
            labels.pop(entry.target_id, None)
            if entry.label and entry.label.strip():
                labels[entry.target_id] = entry.label.strip()
    return labels


def _missing_labels(entries: Sequence[Entry], path: Sequence[Entry]) -> list[LabelEntry]:
    """The label entries that give `path` alone the same labels as in all `entries`."""
    present, wanted = labels_of(path), labels_of(entries)
    return [
        LabelEntry(target_id=entry.id, label=wanted.get(entry.id))
        for entry in path
        if present.get(entry.id) != wanted.get(entry.id)
    ]


def _missing_name(source: SessionLog, path: Sequence[Entry]) -> tuple[SessionInfoEntry, ...]:
    name_in_path = name_of(Header(), path)
    return () if name_in_path == source.name else (SessionInfoEntry(name=source.name),)


_MOST_PATH_CHARS = 4_096


@dataclass(frozen=True, slots=True)
class ContinuationPoint:
    """A place to continue from.

    Attributes:
        session: The session to continue in.
        entry: The picked entry, as in that session.
        leaf_id: The entry there that the next one follows; None for none.
        later: The sessions that continue it, the present one last; empty for the present one.
    """

    session: KnownSession
    entry: Entry
    leaf_id: str | None
    later: tuple[KnownSession, ...] = ()

    @property
    def said(self) -> UserMessage | None:
        """The user's message at that place, which can be edited and sent again."""
        match self.entry:
            case MessageEntry(message=UserMessage() as message):
                return message
            case _:
                return None

    @property
    def text(self) -> str:
        """The text that the user typed in that message."""
        return without_attachments(self.said.text) if self.said else ""

    @property
    def image_count(self) -> int:
        """The number of images in that message."""
        return len(self.said.images) if self.said else 0

    def all_entries(self) -> list[Entry]:
        """All entries of its session and the later ones, each once, by time.

        Neither the time nor the id that a pulled entry states moves or replaces another one.
        """
        sessions = (self.session, *self.later)
        each: dict[str, Entry] = {}
        for _, entry in merge(*(_dated_here(one.entries) for one in sessions), key=itemgetter(0)):
            if entry.pulled_from is None and entry.id in each and each[entry.id].pulled_from:
                del each[entry.id]
            if entry.pulled_from is None or entry.id not in each:
                each[entry.id] = entry
        return list(each.values())


def _dated_here(entries: Sequence[Entry]) -> Iterator[tuple[str, Entry]]:
    """Each entry with its time; a pulled one with that of the entry of this clone before it."""
    when = ""
    for entry in entries:
        when = entry.timestamp if entry.pulled_from is None else when
        yield when, entry


class JoinedTree:
    """Sessions that were compacted one into the next, as one tree.

    The compaction that begins a session follows the last entry it compacted. Copies after it are
    left out, because the earlier session has the originals.

    Args:
        sessions: The oldest first, the present one last.
        leaf_id: The leaf of the present one.
        is_whole: Whether nothing comes before them; if not, copies are recognized by their times.
        unread: A text about an unreadable session before them; empty without one.

    Attributes:
        entries: The entries of all sessions, parents before children. Ids are unique.
        leaf_id: The conversation's leaf among them.
    """

    def __init__(
        self,
        sessions: Sequence[KnownSession],
        leaf_id: str | None,
        *,
        is_whole: bool,
        unread: str = "",
    ) -> None:
        self.unread = unread
        self._sessions = tuple(sessions)
        self._homes: dict[str, tuple[int, Entry]] = {}
        self._ends: dict[str, str] = {}
        self.entries: list[Entry] = []
        above: str | None = None
        names: dict[str | None, str | None] = {}
        for number, session in enumerate(self._sessions):
            if number:
                copied = copies(session, self._sessions[number - 1])
                above = names[leaf_when_continued(self._sessions[number - 1], session)]
            else:
                kept = () if is_whole else entries_kept_behind(session.entries)
                copied = frozenset(entry.id for entry in kept)
            names = self._add(number, session, copied, above)
        self.leaf_id = names[leaf_id]

    def _add(
        self, number: int, session: KnownSession, copied: frozenset[str], above: str | None
    ) -> dict[str | None, str | None]:
        """Take in a session below the entry `above`; its entries by the ids they have there."""
        names: dict[str | None, str | None] = {None: above}
        for entry in session.entries:
            parent = names[entry.parent_id]
            if entry.id in copied and parent is not None:
                names[entry.id] = parent
                self._ends[parent] = entry.id
                continue
            name = entry.id if entry.id not in self._homes else f"{entry.id}@{session.id}"
            names[entry.id] = name
            self._homes[name] = (number, entry)
            if (name, parent) != (entry.id, entry.parent_id):
                entry = entry.model_copy(update={"id": name, "parent_id": parent})
            self.entries.append(entry)
        return names

    @cached_property
    def path(self) -> tuple[Entry, ...]:
        """The entries from the root to the conversation's leaf."""
        return path_to(self.entries, self.leaf_id)

    def path_to(self, entry_id: str | None) -> tuple[Entry, ...]:
        """The entries from the root to `entry_id`."""
        return path_to(self.entries, entry_id)

    def has(self, entry_id: str) -> bool:
        """Whether the tree has this entry."""
        return entry_id in self._homes

    def place(self, entry_id: str) -> ContinuationPoint:
        """The place before a user message, which can then be sent again, or after any other entry.

        After a compaction that began a session means after the messages it kept.

        Raises:
            SessionError: There is no such entry.
        """
        if entry_id not in self._homes:
            raise SessionError(f"Session {self._sessions[-1].id} has no entry {entry_id}.")
        number, entry = self._homes[entry_id]
        match entry:
            case MessageEntry(message=UserMessage()):
                leaf_id = entry.parent_id
            case _:
                leaf_id = self._ends.get(entry_id, entry.id)
        return ContinuationPoint(
            self._sessions[number], entry, leaf_id, self._sessions[number + 1 :]
        )

    def last_said(self) -> str | None:
        """The user's last message on the path to the conversation's leaf."""
        for entry in reversed(self.path):
            if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
                return entry.id
        return None


def join_trees(
    present: KnownSession, leaf_id: str | None, past: PastSessions
) -> Iterator[JoinedTree]:
    """The tree of `present`, then with each session before it; the last one is whole.

    Each tree after the first reads a file, so stop when you have found what you need.
    """
    sessions = [present]
    walked = {present.id}
    unread = ""
    while sessions[0].begins_compacted:
        yield JoinedTree(sessions, leaf_id, is_whole=False)
        earlier = past.find_parent(sessions[0])
        if earlier is None or earlier.id in walked:
            unread = unread_line(sessions[0])
            break
        walked.add(earlier.id)
        sessions.insert(0, earlier)
    yield JoinedTree(sessions, leaf_id, is_whole=True, unread=unread)


def unread_line(session: KnownSession) -> str:
    """Says that the session before `session` cannot be read, and where it should be."""
    where = printable_line(session.parent, _MOST_PATH_CHARS)
    return f"The session before the compaction is gone or cannot be read: {where}"


def copies(session: KnownSession, earlier: KnownSession) -> frozenset[str]:
    """Ids of entries that `session` copied from `earlier`, which it was compacted from."""
    there = {entry.id for entry in earlier.entries}
    kept = entries_kept_behind(session.entries)
    return frozenset(entry.id for entry in kept if entry.id in there)


def leaf_when_continued(earlier: KnownSession, session: KnownSession) -> str | None:
    """The newest entry of `earlier` when `session` was begun by compacting it."""
    taken = copies(session, earlier)
    if kept := [entry.id for entry in session.entries if entry.id in taken]:
        return kept[-1]
    begun = session.entries[0].timestamp
    before = [entry for entry in earlier.entries if entry.timestamp <= begun]
    leaf = leaf_of(before or earlier.entries)
    return leaf.id if leaf is not None else None


def entries_kept_behind(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The earlier entries kept by a session that begins with the compaction `entries[0]`.

    They follow it at once: the time that a later entry states makes no copy of it.
    """
    begun = entries[0].timestamp
    return tuple(takewhile(lambda entry: entry.timestamp < begun, entries[1:]))
