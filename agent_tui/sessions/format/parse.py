"""Read a session file: bytes to header, entries and problems. Nothing in it raises."""

import gc
import io
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

from agent_tui.regular_files import open_regular_file
from agent_tui.sessions.entries import FORMAT_VERSION, CompactionEntry, Entry, Header
from agent_tui.sessions.file.chunks import CHUNK_BYTES, LongLine, read_lines
from agent_tui.sessions.file.disk import describe_fault
from agent_tui.sessions.format.codec import (
    DecodedRecord,
    UnreadableRecordError,
    decode_record,
    recover_records,
)
from agent_tui.sessions.replay.file_changes import complete_result

_MANY_OBJECTS = 50_000
"""Fewer new objects are scanned within a few milliseconds."""


@contextmanager
def garbage_collection_paused() -> Generator[None]:
    """Prevent garbage collection in the block, and right after it because of the new objects.

    Entries and messages have no cycles, but each pass scans all of them: 2/3 of the time for
    reading 100 MB. Freezing and unfreezing moves all objects to the oldest generation without a
    scan. Objects frozen before stay frozen.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_count()[0] > _MANY_OBJECTS:
                stays_frozen = gc.get_freeze_count() > 0
                gc.freeze()
                if not stays_frozen:
                    gc.unfreeze()
            gc.enable()


_MADE_IDS = 0xF000_0000
"""Ids made from line numbers start here, so that they differ from those of lost entries."""


@dataclass(frozen=True, slots=True)
class UnlinkedEntry:
    """An entry read from line `number`, not yet part of the tree.

    `index` counts the lines that are not blank, from 0 for the header: `first_kept_index`, the
    first kept entry of a compaction in version 1, refers to it.
    """

    number: int
    index: int
    entry: Entry
    names_parent: bool
    first_kept_index: int | None


@dataclass(frozen=True, slots=True)
class LinkedEntries:
    """Entries in file order, parents before children, and warnings about repairs."""

    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]


def link_entries(found: Sequence[UnlinkedEntry], *, has_ids: bool) -> LinkedEntries:
    """Make a tree of `found`.

    An entry without an id gets one made from its line number, so that the same file always
    gives the same ids. An entry whose parent is lost becomes a child of the entry before it. One
    before its parent is moved after it. One with the id of another gets a new id, unless both are
    identical: then it is left out.

    Args:
        found: The readable entries, in file order.
        has_ids: False for version 1, whose entries have no ids and form one chain.
    """
    linker = _Linker(found, has_ids)
    for item in found:
        linker.take(item)
    linker.place_waiting()
    return LinkedEntries(tuple(linker.placed.values()), tuple(linker.warnings))


class _Linker:
    def __init__(self, found: Sequence[UnlinkedEntry], has_ids: bool) -> None:
        self.placed: dict[str, Entry] = {}
        self.warnings: list[str] = []
        self._has_ids = has_ids
        self._last_line_of = {item.entry.id: item.number for item in found}
        self._present_id: dict[str, str] = {}
        self._substitute_parent: dict[str, str | None] = {}
        self._waiting: dict[str, list[UnlinkedEntry]] = {}
        self._newest: str | None = None
        self._found = found
        self._id_by_index: dict[int, str] = {}

    def take(self, item: UnlinkedEntry) -> None:
        """Place `item`, or keep it until its parent is placed."""
        parent = item.entry.parent_id
        if (
            parent is not None
            and parent not in self._present_id
            and self._last_line_of.get(parent, 0) > item.number
        ):
            self.warnings.append(f"line {item.number}: comes before its parent; moved after it")
            self._waiting.setdefault(parent, []).append(item)
            return
        self._place_with_followers(item)

    def place_waiting(self) -> None:
        """Place the rest: entries that name each other as parents."""
        while self._waiting:
            parent = next(iter(self._waiting))
            item = self._waiting[parent].pop(0)
            if not self._waiting[parent]:
                del self._waiting[parent]
            self._place_with_followers(item)

    def _place_with_followers(self, item: UnlinkedEntry) -> None:
        ready = [item]
        while ready:
            present = ready.pop()
            self._place(present)
            ready += reversed(self._waiting.pop(present.entry.id, []))

    def _place(self, item: UnlinkedEntry) -> None:
        entry = item.entry
        twin = self.placed.get(self._present_id.get(entry.id, ""))
        if twin is not None and entry.id and twin == entry:
            self.warnings.append(f"line {item.number}: repeats entry {entry.id}; left out")
            return
        changes: dict[str, object] = {}
        parent = self._parent(item)
        if parent != entry.parent_id:
            changes["parent_id"] = parent
        own_id = self._own_id(item)
        if own_id != entry.id:
            changes["id"] = own_id
        if isinstance(entry, CompactionEntry) and not entry.first_kept_entry_id:
            changes["first_kept_entry_id"] = self._first_kept(item.first_kept_index) or own_id
        self.placed[own_id] = entry.model_copy(update=changes) if changes else entry
        self._present_id[entry.id] = own_id
        self._present_id.setdefault(own_id, own_id)  # entries appended to it refer to it by this id
        self._id_by_index[item.index] = own_id
        self._newest = own_id

    def _own_id(self, item: UnlinkedEntry) -> str:
        entry_id = item.entry.id
        if entry_id and entry_id not in self.placed:
            return entry_id
        serial = _MADE_IDS + item.number
        while (made := f"{serial:08x}") in self.placed or made in self._last_line_of:
            serial += 0x10_0000
        if entry_id:
            self.warnings.append(f"line {item.number}: id {entry_id} is taken; now {made}")
        elif self._has_ids:
            self.warnings.append(f"line {item.number}: has no id; now {made}")
        return made

    def _parent(self, item: UnlinkedEntry) -> str | None:
        wanted = item.entry.parent_id
        if wanted is None:
            if not item.names_parent and self._has_ids:
                self.warnings.append(
                    f"line {item.number}: names no parent; {self._describe_link()}"
                )
            return None if item.names_parent else self._newest
        if wanted in self._present_id:
            return self._present_id[wanted]
        if wanted not in self._substitute_parent:
            self.warnings.append(
                f"line {item.number}: parent {wanted} is missing; {self._describe_link()}"
            )
            self._substitute_parent[wanted] = self._newest
        return self._substitute_parent[wanted]

    def _describe_link(self) -> str:
        return f"linked to {self._newest}" if self._newest else "made the first entry"

    def _first_kept(self, index: int | None) -> str | None:
        """The id at `index`, or of the next readable line after it."""
        if index is None:
            return None
        later = (item.index for item in self._found if item.index >= index)
        return self._id_by_index.get(next(later, -1))


@dataclass(frozen=True, slots=True)
class ParsedSession:
    """The contents of a session file. Each of the `warnings` names a line and its problem.

    `has_header` is false if `header` is invented because the file has no readable one.
    `ends_clean`: the next line may follow the last byte directly. `looks_like_session`: the file
    is not of another kind.
    """

    header: Header
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]
    has_header: bool
    ends_clean: bool
    looks_like_session: bool


def parse_session(data: bytes, *, fallback_id: str = "") -> ParsedSession:
    """`parse_lines` for the bytes of a whole file."""
    return parse_lines(io.BytesIO(data), fallback_id=fallback_id)


def parse_lines(lines: Iterable[bytes | LongLine], *, fallback_id: str = "") -> ParsedSession:
    """Read a session file of version 1, 2 or 3, recovering everything readable.

    Lines end at ``\\n`` only. A last line without its line end counts if it is complete; otherwise
    a crash cut it off, and it is left out.

    Args:
        lines: All lines of the file, each with its line end.
        fallback_id: The session's id if the file has no header.
    """
    with garbage_collection_paused():
        return _parse(lines, fallback_id)


def read_session(path: Path, *, as_written: bool = False) -> tuple[os.stat_result, ParsedSession]:
    """The state of the file `path` when it was read, and its contents.

    Args:
        path: The file.
        as_written: Leave results as they are in their lines, without the changes of files that
            later entries record for them.

    Raises:
        SessionError: The file cannot be read.
    """
    try:
        with (
            open_regular_file(path, buffering=CHUNK_BYTES) as file,
            garbage_collection_paused(),
        ):
            state = os.fstat(file.fileno())
            parsed = _parse(read_lines(file), id_in_name(path), completes=not as_written)
            return state, parsed
    except OSError as error:
        raise describe_fault(path, "read", error) from error


def id_in_name(path: PurePath) -> str:
    """The session id in the file name `path`."""
    return path.stem.rpartition("_")[2]


def _parse(
    lines: Iterable[bytes | LongLine], fallback_id: str, *, completes: bool = True
) -> ParsedSession:
    reader = _Reader()
    is_torn, may_be_begun = False, True
    for number, line in enumerate(lines, start=1):
        if number == 1:
            may_be_begun = isinstance(line, bytes) and line.startswith(b"{")
        if isinstance(line, LongLine):
            is_torn = not line.has_end
            reader.pass_over(number, line)
            continue
        is_torn = not line.endswith(b"\n")
        if not line.isspace():
            reader.take(number, line.removesuffix(b"\n"), is_torn=is_torn)
    header = reader.header or Header(id=fallback_id or "unknown", timestamp="", cwd="")
    if "id" not in header.model_fields_set:
        header = header.model_copy(update={"id": fallback_id or "unknown"})
    has_ids = header.version > 1 or any(item.entry.id for item in reader.found)
    if has_ids and header.version == 1:  # only the version number is missing
        header = header.model_copy(update={"version": FORMAT_VERSION})
    linked = link_entries(reader.found, has_ids=has_ids)
    warnings = [*reader.warnings, *linked.warnings]
    if reader.header is None:
        warnings.insert(0, "line 1: no session header; the entries are shown anyway")
    if header.version > FORMAT_VERSION:
        warnings.insert(0, f"line 1: format version {header.version} is newer than this program")
    if reader.unreadable:
        readable = reader.line_count - reader.unreadable
        warnings.insert(0, f"recovered {readable} of {reader.line_count} lines")
    return ParsedSession(
        header=header,
        entries=_with_results_completed(linked.entries) if completes else linked.entries,
        warnings=tuple(warnings),
        has_header=reader.header is not None,
        ends_clean=not is_torn,
        looks_like_session=(
            reader.header is not None
            or bool(linked.entries)
            or (reader.line_count == is_torn and may_be_begun)
        ),
    )


def _with_results_completed(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    by_id = {entry.id: entry for entry in entries}
    for entry in entries:
        if (completed := complete_result(entry, by_id)) is not None:
            by_id[completed.id] = completed
    return tuple(by_id.values())


class _Reader:
    def __init__(self) -> None:
        self.header: Header | None = None
        self.found: list[UnlinkedEntry] = []
        self.warnings: list[str] = []
        self.line_count = 0
        self.unreadable = 0

    def take(self, number: int, line: bytes, *, is_torn: bool) -> None:
        """Read one line that is not blank."""
        index = self.line_count
        self.line_count += 1
        try:
            read = decode_record(line)
        except UnreadableRecordError as error:
            self.unreadable += 1
            problem = "cut off in the middle" if is_torn else str(error)
            self._take_pieces(number, index, line, problem)
            return
        self._take_read(number, index, read)

    def pass_over(self, number: int, line: LongLine) -> None:
        """Count a line that is too long to read."""
        self.line_count += 1
        self.unreadable += 1
        self.warnings.append(
            f"line {number}: too long to read; left out ({line.size_bytes:,} bytes)"
        )

    def _take_pieces(self, number: int, index: int, line: bytes, problem: str) -> None:
        pieces = recover_records(line)
        left_out = len(line) - sum(size for _, size in pieces)
        if pieces:
            problem += f"; recovered from it: {len(pieces)}"
        if left_out:
            problem += f"; left out ({left_out:,} bytes)"
        self.warnings.append(f"line {number}: {problem}")
        for read, _ in pieces:
            self._take_read(number, index, read)

    def _take_read(self, number: int, index: int, read: DecodedRecord) -> None:
        self.warnings += [f"line {number}: {note}" for note in read.notes]
        if isinstance(read.value, Header):
            self._take_header(number, read.value)
            return
        self.found.append(
            UnlinkedEntry(number, index, read.value, read.names_parent, read.first_kept_index)
        )

    def _take_header(self, number: int, header: Header) -> None:
        if self.header is not None:
            self.warnings.append(f"line {number}: a second session header; left out")
        else:
            self.header = header
