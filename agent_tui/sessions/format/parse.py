"""Reading a session file: bytes to header, entries and what was wrong. Nothing in it raises."""

import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from agent_tui.regular_files import open_regular_file
from agent_tui.sessions.entries import FORMAT_VERSION, Entry, Header
from agent_tui.sessions.file.chunks import CHUNK_BYTES, LongLine, read_lines
from agent_tui.sessions.file.disk import describe_fault
from agent_tui.sessions.format.codec import (
    DecodedRecord,
    UnreadableRecordError,
    decode_record,
    recover_records,
)
from agent_tui.sessions.format.linking import UnlinkedEntry, link_entries
from agent_tui.sessions.gc_pause import garbage_collection_paused
from agent_tui.sessions.replay.command_changes import completed_result


@dataclass(frozen=True, slots=True)
class ParsedSession:
    """What a session file holds.

    `warnings` name line and problem, one each. `has_header` is false where `header` is made
    up because the file has none that can be read. `ends_clean`: the next line may be written
    straight behind the last byte. `looks_like_session`: not some file of another kind.
    """

    header: Header
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]
    has_header: bool
    ends_clean: bool
    looks_like_session: bool


def parse_session(data: bytes, *, fallback_id: str = "") -> ParsedSession:
    """As `parse_lines`, of the whole file's bytes."""
    return parse_lines(io.BytesIO(data), fallback_id=fallback_id)


def parse_lines(lines: Iterable[bytes | LongLine], *, fallback_id: str = "") -> ParsedSession:
    """Read a session file of version 1, 2 or 3, recovering all that can be read.

    Lines end at ``\\n`` only. A last line without its end counts if it is whole; otherwise
    it was cut off by a crash and is left out.

    Args:
        lines: Of the whole file, each with its end.
        fallback_id: The session's id where the file has no header.
    """
    with garbage_collection_paused():
        return _parse(lines, fallback_id)


def read_session(path: Path) -> tuple[os.stat_result, ParsedSession]:
    """How the file `path` was when it was read, and what it holds.

    Raises:
        SessionError: The file cannot be read.
    """
    try:
        with open_regular_file(path, buffering=CHUNK_BYTES) as file:
            state = os.fstat(file.fileno())
            return state, parse_lines(read_lines(file), fallback_id=id_in_name(path))
    except OSError as error:
        raise describe_fault(path, "read", error) from error


def id_in_name(path: PurePath) -> str:
    """The id of the session whose file is named `path`."""
    return path.stem.rpartition("_")[2]


def _parse(lines: Iterable[bytes | LongLine], fallback_id: str) -> ParsedSession:
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
    if has_ids and header.version == 1:  # only the number is missing
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
        entries=_with_results_completed(linked.entries),
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
        if (completed := completed_result(entry, by_id)) is not None:
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
        """Count a line that is too long to be read."""
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
