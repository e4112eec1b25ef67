"""Find the sessions that other agents keep on this machine; never writes to them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_tui.messages import JsonObject
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import is_file
from agent_tui.safe_text import printable_line
from agent_tui.sessions.importers.builder import ImportFormat, SessionFinder, SessionHead
from agent_tui.sessions.importers.fields import read_json

_HEAD_BYTES = 256 * 1024
"""Bytes of a file searched for its first prompt: Codex begins with long rules."""

_HEAD_LINES = 60


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A session of another agent, as the beginning of its file describes it.

    `agent` is the name of its format, `agent_label` the agent's usual name. `cwd` is the empty path
    if the file names none. `title` is its name, else the first prompt, one line of at most 200
    characters. `size_bytes` is None for a session in a database. `problem` says why it cannot be
    imported, and is the title then; usually it is empty.
    """

    path: Path
    agent: str
    agent_label: str
    cwd: Path
    title: str
    modified: datetime
    size_bytes: int | None
    problem: str = ""


def foreign_sessions(
    home: Path,
    environ: Mapping[str, str],
    formats: Iterable[ImportFormat],
) -> list[ForeignFile]:
    """The sessions of other agents, newest first. Only the head of each file is read.

    Files that are unreadable or no sessions are skipped, and so are those of Claude Code's
    subagents.

    Args:
        home: The user's home folder.
        environ: The environment, whose variables may name other folders.
        formats: The formats to search for; those that no agent stores add nothing.
    """
    found = [
        file
        for known in formats
        if known.finder is not None
        for path in known.finder.files(home, environ)
        if (file := _foreign_file(path, known.name, known.finder)) is not None
    ]
    return sorted(found, key=lambda file: (file.modified, str(file.path)), reverse=True)


def foreign_agents(formats: Iterable[ImportFormat]) -> tuple[str, ...]:
    """The agents whose sessions can be found on this machine, by the names of their formats."""
    return tuple(known.name for known in formats if known.finder is not None)


def _foreign_file(path: Path, agent: str, finder: SessionFinder) -> ForeignFile | None:
    """The session at `path`, as its place and its head describe it; None if it is no session."""
    head = SessionHead()
    finder.read_place(head, path)
    try:
        if not head.is_session:
            _read_lines(head, path, finder)
        if not head.is_session:
            return None
        status = path.stat() if is_file(path) else None
    except OSError:
        return None
    modified = head.modified
    if modified is None and status is not None:
        modified = datetime.fromtimestamp(status.st_mtime, UTC)
    return ForeignFile(
        path=path,
        agent=agent,
        agent_label=finder.agent,
        cwd=Path(head.cwd),
        title=printable_line(head.problem or head.name or head.prompt),
        modified=modified or datetime.fromtimestamp(0, UTC),
        size_bytes=status.st_size if status is not None else None,
        problem=head.problem,
    )


def _read_lines(head: SessionHead, path: Path, finder: SessionFinder) -> None:
    for number, line in _head_lines(path):
        finder.read_head(head, number, line)
        if head.is_whole:
            return


def _head_lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """The first lines that are JSON objects and complete within the bytes read."""
    room = _HEAD_BYTES
    with open_regular_file(path) as file:
        for number in range(1, _HEAD_LINES + 1):
            line = file.readline(room)
            room -= len(line)
            if not line or (not line.endswith(b"\n") and room <= 0):
                return
            try:
                value = read_json(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield number, value
