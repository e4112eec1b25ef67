"""Read the end of a session file."""

from pathlib import Path

from agent_tui.regular_files import open_regular_file
from agent_tui.sessions.entries import Entry, Header
from agent_tui.sessions.format.codec import UnreadableRecordError, decode_record

_TAIL_BYTES = 400_000
"""Bytes read at first; a large output can be longer."""

_MOST_BYTES = 8_000_000


def newest_entries(path: Path, count: int) -> tuple[Entry, ...]:
    """At least the last `count` entries of `path` in file order, or those in its last 8 MB.

    Unreadable lines are skipped. Blocking.

    Raises:
        OSError: The file cannot be read.
    """
    size_bytes, room = path.stat().st_size, _TAIL_BYTES
    while True:
        start = max(size_bytes - room, 0)
        found = _entries_from(path, start)
        if len(found) >= count or start == 0 or room >= _MOST_BYTES:
            return found
        room *= 4


def _entries_from(path: Path, start: int) -> tuple[Entry, ...]:
    with open_regular_file(path) as file:
        file.seek(start)
        lines = file.read().split(b"\n")
    found: list[Entry] = []
    for line in lines[1:] if start else lines:
        try:
            value = decode_record(line).value
        except UnreadableRecordError:
            continue
        if not isinstance(value, Header):
            found.append(value)
    return tuple(found)
