"""Reads the end of a session file."""

from collections.abc import Iterator
from pathlib import Path

from agent_tui.sessions.entries import Entry, Header
from agent_tui.sessions.file.newest_lines import newest_lines
from agent_tui.sessions.format.codec import UnreadableRecordError, decode_record

_MOST_BYTES = 8_000_000


def newest_entries(path: Path, most_bytes: int = _MOST_BYTES) -> Iterator[Entry]:
    """The entries of `path`, the last one first; unreadable lines are left out. Blocking.

    Args:
        path: The session file.
        most_bytes: Bytes at its end to look at.

    Raises:
        OSError: The file cannot be read.
    """
    for line in newest_lines(path, most_bytes):
        try:
            value = decode_record(line).value
        except UnreadableRecordError:
            continue
        if not isinstance(value, Header):
            yield value
