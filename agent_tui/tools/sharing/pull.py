"""Pulls sessions of the project: what is new in them joins the files here, which only grow."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.errors import SessionError
from agent_tui.secret_text import REMOVED, without_user
from agent_tui.sessions.entries import Entry, Header, PulledFrom
from agent_tui.sessions.file.kept_files import KeptFiles, folder_of
from agent_tui.sessions.file.writer import SessionInUseError
from agent_tui.sessions.format.codec import decode_record
from agent_tui.sessions.format.parse import read_session
from agent_tui.sessions.sharing.form import SharedForm, local_entry, local_header
from agent_tui.sessions.sharing.guard import admit_entry, admit_header
from agent_tui.sessions.sharing.merging import Merge, merge_entries
from agent_tui.sessions.sharing.segments import (
    Segment,
    SegmentName,
    file_key,
    parse_name,
    read_segment,
)
from agent_tui.sessions.store import SessionStore, date_session
from agent_tui.tools.sharing.encryption import Opener
from agent_tui.tools.sharing.git_project import GitProject
from agent_tui.tools.sharing.project_sessions import belongs_to, form_for
from agent_tui.tools.sharing.push import Progress
from agent_tui.tools.sharing.relay import Relay

PullStatus: TypeAlias = Literal["new", "updated", "unchanged", "skipped", "failed"]

_MOST_SESSION_BYTES = 500_000_000
_MOST_BATCH_BYTES = 64_000_000
_REMOVED_HERE = "It was deleted here. `agent-tui sessions pull ID` brings it back."
_ELSEWHERE = "A session of another folder has the same id. It stays as it is."
_TOO_LARGE = f"It is larger than {_MOST_SESSION_BYTES // 1_000_000} MB."
_SEALED = "It is encrypted, and you are not among its recipients."
_HEADLESS = "Its beginning cannot be read."


@dataclass(frozen=True, slots=True)
class PulledSession:
    """What became of one session.

    Attributes:
        id: The session.
        status: ``skipped`` on purpose, ``failed`` for a reason that may pass.
        path: Its file; None if it has none here.
        entries: Number of entries that are new here.
        by: Who pushed its beginning, as they stated it.
        files: Number of kept contents that came along.
        has_branched: Whether it had been continued here and elsewhere.
        differing: Number of entries here that stayed although the remote has others with their ids.
        waiting: Number of entries left out because an entry before them is missing.
        unreadable: Number of lines and parts that could not be read.
        why: Why it was skipped or failed.
        tip: The commit up to which it was pulled; empty if it was not.
    """

    id: str
    status: PullStatus
    path: Path | None = None
    entries: int = 0
    by: str = ""
    files: int = 0
    has_branched: bool = False
    differing: int = 0
    waiting: int = 0
    unreadable: int = 0
    why: str = ""
    tip: str = ""


@dataclass(frozen=True, slots=True)
class PullOrder:
    """What to pull.

    Attributes:
        store: The sessions here.
        merged: The commit of each session up to which it was pulled before.
        secrets: Values that count as keys here.
        opener: Decrypts.
        session_ids: Which sessions; None for all.
    """

    store: SessionStore
    merged: Mapping[str, str]
    secrets: Sequence[str]
    opener: Opener
    session_ids: Sequence[str] | None = None


async def pull_sessions(
    relay: Relay, project: GitProject, order: PullOrder, progress: Progress
) -> tuple[PulledSession, ...]:
    """Pull the sessions of `order`.

    Each session is written at once: whatever ends the program leaves it without the new entries or
    with a beginning of them, and the next pull appends the rest.

    Raises:
        SessionError: The remote cannot be reached.
    """
    tips = await relay.fetch(order.session_ids)
    here = await asyncio.to_thread(_files_here, order.store, project.root)
    done: dict[str, PulledSession] = {}
    behind: dict[str, str] = {}
    for session_id, tip in tips.items():
        if (settled := _settled(session_id, tip, here, order)) is not None:
            done[session_id] = settled
        else:
            behind[session_id] = tip
    earlier = [order.merged[one] for one in behind if one in order.merged]
    trees = await relay.trees([*behind.values(), *earlier])
    news = {
        one: _new_files(trees.get(tip, {}), trees.get(order.merged.get(one, ""), {}), one in here)
        for one, tip in behind.items()
    }
    sizes = await relay.sizes([found for files in news.values() for found in files.values()])
    for batch in _batches(news, sizes):
        wanted = [found for one in batch for found in news[one].values()]
        contents = await relay.contents(wanted, sizes)
        for one in batch:
            files = {name: contents.get(found) for name, found in news[one].items()}
            incoming = _Incoming(one, behind[one], files)
            done[one] = await asyncio.to_thread(_take_in, incoming, here.get(one), project, order)
            progress(len(done), len(tips))
    for one in behind.keys() - done.keys():
        done[one] = PulledSession(one, "failed", why=_TOO_LARGE)
    return tuple(done[one] for one in tips)


@dataclass(frozen=True, slots=True)
class _Here:
    """A session of this id that is stored already; `is_ours`: in this project."""

    path: Path
    is_ours: bool


@dataclass(frozen=True, slots=True)
class _Incoming:
    """The new files of one session; None for one that could not be read."""

    id: str
    tip: str
    files: Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True)
class _Read:
    """What the new files hold."""

    header: Header | None = None
    by: str = ""
    entries: Sequence[Entry] = ()
    contents: Sequence[bytes] = ()
    unreadable: int = 0
    sealed: int = 0
    segments: int = 0


@dataclass(frozen=True, slots=True)
class _Copies:
    """Tells copies of the entries here: they travelled, and may lack keys and decisions."""

    form: SharedForm

    def is_copy(self, own: Entry, other: Entry) -> bool:
        """Whether `other`, admitted and still in the form of the travel, is `own`."""
        travelled = decode_record(self.form.write_entry(own).rstrip(b"\n")).value
        assert not isinstance(travelled, Header), "an entry stays one"
        mine = self.form.write_entry(admit_entry(travelled))
        theirs = self.form.write_entry(other)
        return mine == theirs or _is_masked(theirs, mine)


def _is_masked(masked: bytes, whole: bytes) -> bool:
    """Whether `masked` is `whole` with some places replaced by the mark for removed keys."""
    first, *pieces = masked.split(REMOVED.encode())
    if not pieces or not whole.startswith(first):
        return False
    place = len(first)
    for piece in pieces[:-1]:
        found = whole.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return whole.endswith(pieces[-1]) and len(whole) - len(pieces[-1]) >= place


def _files_here(store: SessionStore, root: Path) -> dict[str, _Here]:
    return {found.id: _Here(found.path, belongs_to(found, root)) for found in store.list()}


def _settled(
    session_id: str, tip: str, here: Mapping[str, _Here], order: PullOrder
) -> PulledSession | None:
    """What is known of a session without looking into it; None if it has to be pulled."""
    own = here.get(session_id)
    if own is not None and not own.is_ours:
        return PulledSession(session_id, "skipped", why=_ELSEWHERE)
    if own is None and session_id in order.merged and order.session_ids is None:
        return PulledSession(session_id, "skipped", why=_REMOVED_HERE)
    if own is not None and order.merged.get(session_id) == tip:
        return PulledSession(session_id, "unchanged", own.path, tip=tip)
    return None


def _new_files(tree: Mapping[str, str], before: Mapping[str, str], is_here: bool) -> dict[str, str]:
    """The parts and kept contents in `tree` that were not pulled yet, in their order."""
    wanted = sorted(name for name in tree if parse_name(name) is not None or file_key(name))
    return {name: tree[name] for name in wanted if not is_here or before.get(name) != tree[name]}


def _batches(news: Mapping[str, Mapping[str, str]], sizes: Mapping[str, int]) -> list[list[str]]:
    """The sessions that are not too large, a few at a time."""
    batches: list[list[str]] = []
    room = 0
    for one, files in news.items():
        size = sum(sizes.get(found, 0) for found in files.values())
        if size > _MOST_SESSION_BYTES:
            continue
        if size > room or not batches:
            batches.append([])
            room = _MOST_BATCH_BYTES
        batches[-1].append(one)
        room -= size
    return batches


def _take_in(
    incoming: _Incoming, own: _Here | None, project: GitProject, order: PullOrder
) -> PulledSession:
    """Join the new entries of a session with its file here, or make one. Blocking."""
    read = _read_files(incoming, order.opener)
    if read.segments and read.sealed == read.segments:
        return PulledSession(incoming.id, "failed", own and own.path, why=_SEALED)
    try:
        if own is not None:
            return _join(incoming, read, own.path, project, order)
        return _begin(incoming, read, project, order)
    except SessionInUseError as error:
        why = f"It is open in {error.owner}. Close it there, then pull again."
        return PulledSession(incoming.id, "failed", own and own.path, why=why)
    except SessionError as error:
        return PulledSession(incoming.id, "failed", own and own.path, why=str(error))


def _read_files(incoming: _Incoming, opener: Opener) -> _Read:
    segments: list[Segment] = []
    contents: list[bytes] = []
    unreadable = sealed = 0
    names = sorted(incoming.files, key=_order)
    for name in names:
        data, part = incoming.files[name], parse_name(name)
        opened = opener.open(data, part.key if part else file_key(name)) if data else None
        if part is None:
            contents += [] if opened is None else [opened]
        elif opened is None:
            sealed += 1
        else:
            try:
                segments.append(read_segment(opened, incoming.id))
            except SessionError:
                unreadable += 1
    first = next((segment for segment in segments if segment.header is not None), None)
    return _Read(
        header=first and first.header,
        by=first.by if first else "",
        entries=[admit_entry(entry) for segment in segments for entry in segment.entries],
        contents=contents,
        unreadable=unreadable + sum(segment.unreadable for segment in segments),
        sealed=sealed,
        segments=sum(parse_name(name) is not None for name in names),
    )


def _order(name: str) -> tuple[int, SegmentName | str]:
    part = parse_name(name)
    return (0, part) if part is not None else (1, name)


def _join(
    incoming: _Incoming, read: _Read, path: Path, project: GitProject, order: PullOrder
) -> PulledSession:
    """Append what is new to the session at `path`, which no program may have open."""
    with order.store.open(str(path), project.root) as log:
        before, parsed = read_session(path, as_written=True)
        copies = _Copies(form_for(log.header.cwd, project.root, order.secrets))
        merge = merge_entries(parsed.entries, read.entries, copies.is_copy)
        added = [local_entry(entry, project.root) for entry in merge.added]
        log.append_placed(added)
    if added:
        date_session(path, added, earliest_ns=before.st_mtime_ns)
    return _outcome(incoming, read, merge, "updated", path)


def _begin(
    incoming: _Incoming, read: _Read, project: GitProject, order: PullOrder
) -> PulledSession:
    """Make the file of a session that is new here."""
    if read.header is None:
        return PulledSession(incoming.id, "failed", why=_HEADLESS)
    source = PulledFrom(by=read.by, remote=without_user(project.fetch_address))
    header = local_header(admit_header(read.header), project.root, source)
    merge = merge_entries((), read.entries, lambda _own, _other: True)
    entries = [local_entry(entry, project.root) for entry in merge.added]
    path = order.store.write_copy(header, entries)
    return _outcome(incoming, read, merge, "new", path)


def _outcome(
    incoming: _Incoming, read: _Read, merge: Merge, status: PullStatus, path: Path
) -> PulledSession:
    kept = KeptFiles(folder_of(path))
    files = sum(map(kept.keep, read.contents))
    return PulledSession(
        incoming.id,
        status if merge.added or files or status == "new" else "unchanged",
        path,
        entries=len(merge.added),
        by=read.by,
        files=files,
        has_branched=merge.has_branched,
        differing=len(merge.differing),
        waiting=merge.waiting,
        unreadable=read.unreadable + read.sealed,
        # What waits may become readable with the next push, or with another key.
        tip="" if merge.waiting or read.sealed else incoming.tip,
    )
