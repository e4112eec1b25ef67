"""Pulls sessions of the project: what is new in them joins the files here, which only grow."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.errors import SessionError
from agent_tui.features.sharing.encryption import Opener
from agent_tui.features.sharing.form import SharedForm, local_entry, local_header
from agent_tui.features.sharing.git_project import GitProject
from agent_tui.features.sharing.guard import admit_entry, admit_header
from agent_tui.features.sharing.merging import Merge, merge_entries
from agent_tui.features.sharing.project_sessions import belongs_to, form_for, root_around
from agent_tui.features.sharing.push import BROKEN, Progress, few_at_a_time
from agent_tui.features.sharing.relay import Relay
from agent_tui.features.sharing.segments import (
    MOST_ENTRIES,
    MOST_OPENED_BYTES,
    OversizeError,
    Segment,
    file_key,
    parse_name,
    read_segment,
)
from agent_tui.safe_text import printable_line
from agent_tui.secret_text import REMOVED, without_user
from agent_tui.sessions.entries import Entry, Header, PulledFrom, timestamp_behind
from agent_tui.sessions.file.kept_files import (
    MOST_FILE_BYTES,
    MOST_STORED_BYTES,
    KeptFiles,
    folder_of,
)
from agent_tui.sessions.file.writer import SessionInUseError
from agent_tui.sessions.format.codec import decode_record
from agent_tui.sessions.format.parse import read_session
from agent_tui.sessions.store import SessionStore, date_session

PullStatus: TypeAlias = Literal["new", "updated", "unchanged", "skipped", "failed"]

_MOST_BATCH_BYTES = 64_000_000
_MOST_PORTION_BYTES = 16_000_000
_MOST_SEALED_BYTES = MOST_FILE_BYTES + 100_000
"""Of a kept content in its encrypted form."""

_MOST_NAME_CHARS = 100
"""Of who pushed an entry: it is written beside each of them."""

_REMOVED_HERE = "It was deleted here. `agent-tui sessions pull ID` brings it back."
_ELSEWHERE = "A session of another folder has the same id. It stays as it is."
_TOO_LARGE = (
    f"Its new entries are more than {MOST_OPENED_BYTES // 1_000_000} MB, or more than "
    f"{MOST_ENTRIES:,}. None of them was taken. Ask who pushes to this remote."
)
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
        files_left: Number of kept contents left out: too large, without room, or unreadable.
        stays: Whether it was written here, too, and continues where its user left it.
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
    files_left: int = 0
    stays: bool = False
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
    here = await asyncio.to_thread(_files_here, order.store, project.roots)
    done: dict[str, PulledSession] = {}
    behind: dict[str, str] = {}
    for session_id, tip in tips.items():
        if (settled := _settled(session_id, tip, here, order)) is not None:
            done[session_id] = settled
        else:
            behind[session_id] = tip
    for few in few_at_a_time(behind):
        news = await _read_news(relay, {one: behind[one] for one in few}, here, order)
        done |= {one: PulledSession(one, "failed", why=BROKEN) for one in few if one not in news}
        parts = {one: each.parts for one, each in news.items()}
        sizes = await relay.sizes([found for each in news.values() for found in each.objects])
        for batch in _batches(parts, sizes):
            contents = await relay.contents([f for o in batch for f in parts[o].values()], sizes)
            for one in batch:
                files = {name: contents.get(found) for name, found in parts[one].items()}
                incoming = _Incoming(one, behind[one], files)
                own = here.get(one)
                pulled = await asyncio.to_thread(_take_in, incoming, own, project, order)
                done[one] = await _take_files(relay, pulled, news[one].contents, sizes, order)
                progress(len(done), len(tips))
        done |= {
            one: PulledSession(one, "failed", why=_TOO_LARGE) for one in few if one not in done
        }
    return tuple(done[one] for one in tips)


@dataclass(frozen=True, slots=True)
class _Here:
    """A session of this id that is stored already; `is_ours`: in this project."""

    path: Path
    is_ours: bool


@dataclass(frozen=True, slots=True)
class _News:
    """The files of one session that were not pulled yet: their objects by name, in their order."""

    parts: Mapping[str, str]
    contents: Mapping[str, str]

    @property
    def objects(self) -> tuple[str, ...]:
        return (*self.parts.values(), *self.contents.values())


@dataclass(frozen=True, slots=True)
class _Incoming:
    """The new parts of one session; None for one that could not be read."""

    id: str
    tip: str
    files: dict[str, bytes | None]


@dataclass(frozen=True, slots=True)
class _Read:
    """What the new files hold."""

    header: Header | None = None
    by: str = ""
    entries: Sequence[Entry] = ()
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
        theirs = self.form.write_entry(other.model_copy(update={"timestamp": own.timestamp}))
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


def _files_here(store: SessionStore, roots: Sequence[Path]) -> dict[str, _Here]:
    return {found.id: _Here(found.path, belongs_to(found, roots)) for found in store.list()}


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


async def _read_news(
    relay: Relay, tips: Mapping[str, str], here: Mapping[str, _Here], order: PullOrder
) -> dict[str, _News]:
    """The new files of each session; those whose commit cannot be read are left out."""
    earlier = [order.merged[one] for one in tips if one in order.merged]
    trees = await relay.trees([*tips.values(), *earlier])
    news: dict[str, _News] = {}
    for one, tip in tips.items():
        if (tree := trees.get(tip)) is None:
            continue
        before = trees.get(order.merged.get(one, ""), {}) if one in here else {}
        fresh = {name: tree[name] for name in sorted(tree) if before.get(name) != tree[name]}
        news[one] = _News(
            {name: found for name, found in fresh.items() if parse_name(name) is not None},
            {name: found for name, found in fresh.items() if file_key(name)},
        )
    return news


def _batches(news: Mapping[str, Mapping[str, str]], sizes: Mapping[str, int]) -> list[list[str]]:
    """The sessions that are not too large, a few at a time."""
    batches: list[list[str]] = []
    room = 0
    for one, files in news.items():
        size = sum(sizes.get(found, 0) for found in files.values())
        if size > MOST_OPENED_BYTES:
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
    try:
        read = _read_parts(incoming, order.opener, without_user(project.fetch_address))
        if read.segments and read.sealed == read.segments:
            return PulledSession(incoming.id, "failed", own and own.path, why=_SEALED)
        if own is not None:
            return _join(incoming, read, own.path, project, order)
        return _begin(incoming, read, project, order)
    except SessionInUseError as error:
        why = f"It is open in {error.owner}. Close it there, then pull again."
        return PulledSession(incoming.id, "failed", own and own.path, why=why)
    except OversizeError:
        return PulledSession(incoming.id, "failed", own and own.path, why=_TOO_LARGE)
    except SessionError as error:
        return PulledSession(incoming.id, "failed", own and own.path, why=str(error))


def _read_parts(incoming: _Incoming, opener: Opener, remote: str) -> _Read:
    """The entries in the new parts, each with who pushed it.

    Raises:
        OversizeError: They take more memory than a session may.
    """
    segments: list[Segment] = []
    entries: list[Entry] = []
    unreadable = sealed = 0
    free_bytes, free_lines = MOST_OPENED_BYTES, MOST_ENTRIES
    names = sorted(filter(None, map(parse_name, incoming.files)))
    for name in names:
        data = incoming.files.pop(str(name))
        opened = opener.open(data, name.key, free_bytes) if data else None
        if opened is None:
            sealed += 1
            continue
        free_bytes -= len(opened)
        try:
            segment = read_segment(opened, incoming.id, free_lines)
        except OversizeError:
            raise
        except SessionError:
            unreadable += 1
            continue
        free_lines -= segment.lines
        source = printable_line(PulledFrom(by=segment.by, remote=remote).name, _MOST_NAME_CHARS)
        pulled = (admit_entry(entry) for entry in segment.entries)
        entries += [entry.model_copy(update={"pulled_from": source}) for entry in pulled]
        segments.append(replace(segment, entries=()))
    first = next((segment for segment in segments if segment.header is not None), None)
    return _Read(
        header=first and first.header,
        by=printable_line(first.by, _MOST_NAME_CHARS) if first else "",
        entries=entries,
        unreadable=unreadable + sum(segment.unreadable for segment in segments),
        sealed=sealed,
        segments=len(names),
    )


async def _take_files(
    relay: Relay,
    pulled: PulledSession,
    contents: Mapping[str, str],
    sizes: Mapping[str, int],
    order: PullOrder,
) -> PulledSession:
    """Keep the contents of files that came along with a session, a few at a time."""
    if pulled.path is None or pulled.status == "failed" or not contents:
        return pulled
    kept = KeptFiles(folder_of(pulled.path), most_bytes=MOST_STORED_BYTES)
    names = {found: name for name, found in contents.items()}
    small = [one for one in names if sizes.get(one, 0) <= _MOST_SEALED_BYTES]
    files = 0
    for few in _portions(small, sizes):
        for one, data in (await relay.contents(few, sizes)).items():
            with suppress(OversizeError):
                content = order.opener.open(data, file_key(names[one]), MOST_FILE_BYTES)
                stored = content is not None and await asyncio.to_thread(kept.keep_pulled, content)
                files += bool(stored)
    status = "updated" if files and pulled.status == "unchanged" else pulled.status
    return replace(pulled, status=status, files=files, files_left=len(contents) - files)


def _portions(objects: Iterable[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
    portion: list[str] = []
    for one in objects:
        if portion and sum(sizes[each] for each in portion) + sizes[one] > _MOST_PORTION_BYTES:
            yield portion
            portion = []
        portion.append(one)
    if portion:
        yield portion


def _join(
    incoming: _Incoming, read: _Read, path: Path, project: GitProject, order: PullOrder
) -> PulledSession:
    """Append what is new to the session at `path`, which no program may have open."""
    with order.store.open(str(path), project.root) as log:
        before, parsed = read_session(path, as_written=True)
        copies = _Copies(form_for(log.header.cwd, project.roots, order.secrets))
        merge = merge_entries(parsed.entries, read.entries, copies.is_copy)
        root = root_around(log.header.cwd, project.roots) or project.root
        # Whatever time is stated, it was not here yet when the session began: it is no copy.
        begun = (log.header.timestamp, *(entry.timestamp for entry in parsed.entries[:1]))
        earliest = timestamp_behind(begun)
        added = [local_entry(entry, root, earliest) for entry in merge.added]
        log.append_placed(added)
    if added:
        # One that was written here stays as old as it is: `-c` opens the one that was left last.
        dated = () if merge.stays else added
        date_session(path, dated, earliest_ns=before.st_mtime_ns)
    return _outcome(incoming, read, merge, "updated", path)


def _begin(
    incoming: _Incoming, read: _Read, project: GitProject, order: PullOrder
) -> PulledSession:
    """Make the file of a session that is new here."""
    if read.header is None:
        return PulledSession(incoming.id, "failed", why=_HEADLESS)
    remote = printable_line(without_user(project.fetch_address), _MOST_NAME_CHARS)
    source = PulledFrom(by=read.by, remote=remote)
    header = local_header(admit_header(read.header), project.root, source)
    merge = merge_entries((), read.entries, lambda _own, _other: True)
    entries = [local_entry(entry, project.root) for entry in merge.added]
    path = order.store.write_copy(header, entries)
    return _outcome(incoming, read, merge, "new", path)


def _outcome(
    incoming: _Incoming, read: _Read, merge: Merge, status: PullStatus, path: Path
) -> PulledSession:
    return PulledSession(
        incoming.id,
        status if merge.added or status == "new" else "unchanged",
        path,
        entries=len(merge.added),
        by=read.by,
        stays=merge.stays,
        differing=len(merge.differing),
        waiting=merge.waiting,
        unreadable=read.unreadable + read.sealed,
        # What waits may become readable with the next push, or with another key.
        tip="" if merge.waiting or read.sealed else incoming.tip,
    )
