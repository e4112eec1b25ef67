"""Sessions of pi, versions 1 to 3, and our own: the format this program writes."""

from collections.abc import Sequence
from pathlib import Path

from agent_tui.errors import SessionError
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.files import describe_fault
from agent_tui.sessions.importers.conversation import ForeignSession
from agent_tui.sessions.parse import parse_session


def read_pi(path: Path) -> ForeignSession:
    """The branch of `path` that was written last.

    Raises:
        SessionError: The file cannot be read, or holds no entry.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise describe_fault(path, "read", error) from error
    parsed = parse_session(data, fallback_id=path.stem.rpartition("_")[2])
    if not parsed.entries:
        raise SessionError(f"{path}: no line of it is an entry of a session.")
    entries = _newest_branch(parsed.entries)
    warnings = parsed.warnings
    if left := len(parsed.entries) - len(entries):
        warnings = (*warnings, f"{left:,} entries of other branches were left out")
    return ForeignSession(parsed.header, entries, warnings)


def _newest_branch(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    by_id = {entry.id: entry for entry in entries}
    upward: list[Entry] = []
    present: Entry | None = entries[-1]
    while present is not None:
        upward.append(present)
        present = by_id[present.parent_id] if present.parent_id is not None else None
    return tuple(reversed(upward))
