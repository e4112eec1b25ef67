"""Begin a session as a copy of another one up to some entry; the other is not changed."""

from collections.abc import Sequence
from pathlib import Path

from agent_tui.config import Durability
from agent_tui.errors import SessionError
from agent_tui.sessions.entries import (
    Entry,
    Header,
    LabelEntry,
    SessionInfoEntry,
    milliseconds,
    timestamp_after,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore


def fork_session(
    source: SessionLog,
    leaf_id: str | None,
    store: SessionStore | None,
    *,
    cwd: Path,
    launch_cwd: Path | None = None,
    durability: Durability = "entry",
    origin: str = "",
) -> SessionLog:
    """A new session with the path to `leaf_id` in `source`, which may be open read-only.

    The entries keep their ids and times, so that edits and compactions among them stay valid: the
    model sees what it saw there. The name and the labels of copied entries are kept. The file
    appears complete or not at all.

    Args:
        source: The session to copy.
        leaf_id: The last entry to copy; None for none.
        store: The store for the file; None for a session in memory only.
        cwd: The folder of the new session.
        launch_cwd: Where the program was started, if it works elsewhere.
        durability: The durability of the new session.
        origin: What makes it; empty for the user.

    Raises:
        SessionError: There is no such entry, or the file cannot be written.
    """
    path = path_to(source.entries, leaf_id, source.header.id)
    before = source.header
    header = Header(
        timestamp=timestamp_after(milliseconds(entry.timestamp) for entry in path),
        cwd=str(cwd),
        provider=before.provider,
        model_id=before.model_id,
        base_url=before.base_url,
        thinking_level=before.thinking_level,
        parent_session=str(source.path) if source.path else before.id,
        compaction=before.compaction and before.compaction.model_copy(update={"spent": ()}),
        launch_cwd=str(launch_cwd) if launch_cwd else None,
        origin=origin or None,
        first_prompt=before.first_prompt,
    )
    file = store.create(header).path if store is not None else None
    entries = (*path, *_missing_labels(source.entries, path), *_missing_name(source, path))
    if not entries:
        return SessionLog.create(file, header, durability)
    return SessionLog.write(file, header, entries, durability)


def path_to(
    entries: Sequence[Entry], leaf_id: str | None, session_id: str = ""
) -> tuple[Entry, ...]:
    """The entries from the root to `leaf_id`, itself included; none for None.

    Args:
        entries: All entries of a session.
        leaf_id: The last entry wanted.
        session_id: Named in the error.

    Raises:
        SessionError: There is no such entry.
    """
    by_id = {entry.id: entry for entry in entries}
    if leaf_id is not None and leaf_id not in by_id:
        raise SessionError(f"Session {session_id} has no entry {leaf_id}.")
    upward: list[Entry] = []
    while leaf_id is not None:
        upward.append(by_id[leaf_id])
        leaf_id = by_id[leaf_id].parent_id
    return tuple(reversed(upward))


def labels_of(entries: Sequence[Entry]) -> dict[str, str]:
    """The label of each entry that has one, by its id; the newest label counts."""
    labels: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, LabelEntry):
            labels.pop(entry.target_id, None)
            if entry.label and entry.label.strip():
                labels[entry.target_id] = entry.label.strip()
    return labels


def _missing_labels(entries: Sequence[Entry], path: Sequence[Entry]) -> list[LabelEntry]:
    """The label entries that give `path` alone the same labels as in all `entries`."""
    present, wanted = labels_of(path), labels_of(entries)
    return [
        LabelEntry(target_id=entry.id, label=wanted.get(entry.id))
        for entry in path
        if present.get(entry.id) != wanted.get(entry.id)
    ]


def _missing_name(source: SessionLog, path: Sequence[Entry]) -> tuple[SessionInfoEntry, ...]:
    names = [entry.name or "" for entry in path if isinstance(entry, SessionInfoEntry)]
    name_in_path = names[-1] if names else ""
    return () if name_in_path == source.name else (SessionInfoEntry(name=source.name),)
