"""The parts in which a session travels: a few lines about the part, then lines of the session.

A part is never changed once it is written. What a session holds is the union of its parts, by the
ids of their entries, so two parts that were written at the same time need no merge.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Literal

from pydantic import ValidationError

from agent_tui.errors import SessionError
from agent_tui.features.sharing.guard import is_sound
from agent_tui.messages import Stored
from agent_tui.sessions.entries import Entry, Header
from agent_tui.sessions.file.chunks import MAX_LINE_BYTES
from agent_tui.sessions.format.codec import UnreadableRecordError, decode_record

VERSION = 1
SEGMENT_BYTES = 1_000_000
"""A part is closed at this size; hosts of git refuse files of 100 MB."""

MOST_OPENED_BYTES = 256_000_000
"""Of one session's new parts, decrypted and unpacked: about 1 GB of memory as entries."""

MOST_ENTRIES = 400_000
"""Lines of one session's new parts: many small entries take more memory than their bytes."""

MOST_IDS_BYTES = 16_000_000
"""Of one session's lists of ids, which is ids of more than `MOST_ENTRIES`."""

HEADER_ID = "header"
"""Stands in a list of ids for the session's header."""

PLAIN = "plain"
"""The key of parts that are not encrypted; see `SegmentName.key`."""

_OVERSIZE_HINT = "Nothing of it was taken. Ask who pushes to this remote."

_NAME = re.compile(r"(?P<number>[0-9]{6,18})-(?P<key>[0-9a-f]{12}|plain)-(?P<digest>[0-9a-f]{24})")
_MOST_PARTS = 10**12
_IDS_SUFFIX = ".ids"
_FILE = re.compile(r"file-(?P<key>[0-9a-f]{12}|plain)-[0-9a-f]{40}")


class OversizeError(SessionError):
    """What somebody pushed takes more memory than a session may."""


class SegmentHead(Stored):
    """The first line of a part: of which session it is, and who wrote it, as they state it."""

    type: Literal["shared_segment"] = "shared_segment"
    version: int = VERSION
    session: str
    by: str = ""


@dataclass(frozen=True, slots=True, order=True)
class SegmentName:
    """The name of a part in a tree of git: parts with a lower number were written earlier.

    Attributes:
        number: From 1 on.
        key: Which recipients it is encrypted to; `PLAIN` if it is not.
        digest: A hash of its content.
    """

    number: int
    key: str
    digest: str

    def __str__(self) -> str:
        return f"{self.number:06}-{self.key}-{self.digest}"

    @property
    def ids_name(self) -> str:
        """The name of the list of its ids."""
        return f"{self}{_IDS_SUFFIX}"


@dataclass(frozen=True, slots=True)
class SegmentDraft:
    """A part before it is written: the `ids` in it, and its lines."""

    ids: tuple[str, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Segment:
    """What was read from a part. `unreadable` counts lines that were left out, of all `lines`."""

    by: str
    header: Header | None
    entries: tuple[Entry, ...]
    unreadable: int
    lines: int = 0


def parse_name(name: str) -> SegmentName | None:
    """The part with this name; None if `name` is that of something else."""
    found = _NAME.fullmatch(name)
    return SegmentName(int(found["number"]), found["key"], found["digest"]) if found else None


def file_name(key: str, session_id: str, digest: str) -> str:
    """The name of a kept content of a session in its tree."""
    mixed = f"{key} {session_id} {digest}".encode()
    return f"file-{key}-{hashlib.sha256(mixed).hexdigest()[:40]}"


def file_key(name: str) -> str:
    """The key of the kept content with this name; empty if `name` is that of something else."""
    found = _FILE.fullmatch(name)
    return found["key"] if found else ""


def draft_segments(
    session_id: str, by: str, lines: Iterable[tuple[str, bytes]]
) -> Iterator[SegmentDraft]:
    """Divide the lines of a session into parts.

    Args:
        session_id: The session.
        by: Who writes them.
        lines: Each with the id of its entry, or `HEADER_ID`.
    """
    head = SegmentHead(session=session_id, by=by).model_dump_json(by_alias=True).encode() + b"\n"
    ids: list[str] = []
    data = bytearray(head)
    for entry_id, line in lines:
        if ids and len(data) + len(line) > SEGMENT_BYTES:
            yield SegmentDraft(tuple(ids), bytes(data))
            ids.clear()
            data[:] = head
        ids.append(entry_id)
        data += line
    if ids:
        yield SegmentDraft(tuple(ids), bytes(data))


def name_segment(number: int, key: str, data: bytes) -> SegmentName:
    """The name of the part with this content."""
    return SegmentName(number, key, hashlib.sha256(data).hexdigest()[:24])


def write_ids(ids: Iterable[str]) -> bytes:
    """A list of ids as a file."""
    return "".join(f"{entry_id}\n" for entry_id in ids).encode()


def read_ids(data: bytes) -> frozenset[str]:
    """The ids in a file that `write_ids` made."""
    return frozenset(data.decode("ascii", "replace").split())


def listed_names(tree: Mapping[str, str], key: str) -> list[str]:
    """The names of the lists of ids in `tree` that belong to parts with `key`."""
    names = filter(None, map(parse_name, tree))
    return [name.ids_name for name in names if name.key == key and name.ids_name in tree]


def next_number(tree: Iterable[str]) -> int:
    """The number of the next part of a tree; absurd numbers, which nobody reached, don't count."""
    numbers = (name.number for name in filter(None, map(parse_name, tree)))
    return max((number for number in numbers if number < _MOST_PARTS), default=0) + 1


def read_segment(data: bytes, session_id: str, most_lines: int = MOST_ENTRIES) -> Segment:
    """Read a part, which anybody may have written. Of entries with the same id, the first counts.

    Raises:
        OversizeError: It has more than `most_lines`.
        SessionError: It is not a part of this session, or a newer version wrote it.
    """
    first, _, rest = data.partition(b"\n")
    try:
        head = SegmentHead.model_validate_json(first)
    except ValidationError as error:
        raise SessionError(f"A part of session {session_id} is damaged.") from error
    if head.version > VERSION:
        raise SessionError(
            f"A newer agent-tui pushed session {session_id}.", "Update agent-tui, then pull again."
        )
    if head.session != session_id:
        raise SessionError(f"A part of session {session_id} belongs to another session.")
    header: Header | None = None
    entries: dict[str, Entry] = {}
    unreadable = lines = 0
    for lines, ended in enumerate(BytesIO(rest), start=1):
        if lines > most_lines:
            raise OversizeError(f"Session {session_id} has too many entries.", _OVERSIZE_HINT)
        line = ended.removesuffix(b"\n")
        if not line or line.isspace():
            continue
        try:
            value = decode_record(line).value if len(line) <= MAX_LINE_BYTES else None
        except UnreadableRecordError:
            value = None
        if isinstance(value, Header) and value.id == session_id:
            header = header or value
        elif value is not None and not isinstance(value, Header) and is_sound(value):
            entries.setdefault(value.id, value)
        else:
            unreadable += 1
    return Segment(head.by, header, tuple(entries.values()), unreadable, lines)
