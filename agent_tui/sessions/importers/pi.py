"""Sessions of pi, versions 1 to 3, and our own: the format this program writes."""

from pathlib import Path

from agent_tui.errors import SessionError
from agent_tui.sessions.file.disk import describe_fault
from agent_tui.sessions.format.parse import parse_session
from agent_tui.sessions.importers.builder import ForeignSession


def read_pi(path: Path) -> ForeignSession:
    """All entries of `path`, those of every branch; the last one is where it goes on.

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
    return ForeignSession(parsed.header, parsed.entries, parsed.warnings)
