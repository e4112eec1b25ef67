"""Import a session of another agent as a new session that can continue with a turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from agent_tui.errors import SessionError
from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    TextContent,
    ToolCall,
    ToolResultMessage,
)
from agent_tui.sessions.entries import (
    FORMAT_VERSION,
    CustomEntry,
    Entry,
    Header,
    MessageEntry,
    new_entry_id,
    sound_timestamp,
)
from agent_tui.sessions.file.disk import DiskFile, describe_fault, write_new_file
from agent_tui.sessions.file.kept_files import KeptFiles, folder_of
from agent_tui.sessions.format.codec import encode_header, encode_repaired
from agent_tui.sessions.importers.formats import detect_format, read_foreign
from agent_tui.sessions.replay.normalise import NO_RESULT_TEXT
from agent_tui.sessions.store import SessionStore

IMPORTED = "imported"
"""Custom type of the entry that records where a session was imported from."""


def import_source(entries: Sequence[Entry]) -> str:
    """The format of the session that `entries` were imported from; empty if they were not."""
    for entry in entries:
        if isinstance(entry, CustomEntry) and entry.custom_type == IMPORTED:
            written_by = entry.data.get("format") if isinstance(entry.data, dict) else None
            return written_by if isinstance(written_by, str) else ""
    return ""


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported session.

    Args:
        id: The id of the new session.
        path: The file of the new session.
        entries: Number of entries taken from the other agent's file.
        warnings: What was unreadable in that file or left out, one line each.
    """

    id: str
    path: Path
    entries: int
    warnings: tuple[str, ...]


def import_session(
    store: SessionStore,
    path: Path,
    *,
    cwd: Path,
    format_name: str | None = None,
    until: int | None = None,
) -> Imported:
    """Make a new session in `store` that begins with the contents of `path`, which is only read.

    Folder, model and name are those of the other session. After its entries come results for
    calls that have none, and an entry that records the source.

    Args:
        store: The store for the new session; it knows the formats.
        path: The other agent's file.
        cwd: The folder to use if the file names none.
        format_name: The format of the file; None to detect it.
        until: Number of entries to take, from the first on; None for all.

    Raises:
        SessionError: The file cannot be read, is of no known format or holds no message, or the
            new one cannot be written; there is none then.
    """
    written_by = format_name or detect_format(path, store.formats)
    foreign = read_foreign(path, written_by, store.formats)
    taken = foreign.entries if until is None else foreign.entries[:until]
    if not taken:
        raise SessionError(f"{path} has no entries to import.")
    source: JsonObject = {
        "path": str(path),
        "format": written_by,
        "sessionId": foreign.header.id,
        "entries": len(taken),
        "entriesOfFile": len(foreign.entries),
    }
    mark = CustomEntry(custom_type=IMPORTED, data=source)
    entries = _chained(taken, (*_missing_results(taken), mark))
    header = _header(foreign.header, cwd)
    with store.create(header) as log:
        target = log.path
    assert target is not None, "a store keeps its sessions in files"
    lines = [encode_header(header), *(encode_repaired(entry)[1] for entry in entries)]
    try:
        write_new_file(target, b"".join(lines), DiskFile, sync=True)
    except OSError as error:
        raise describe_fault(target, "written", error) from error
    _keep_contents(target, taken, foreign.contents)
    return Imported(header.id, target, len(taken), foreign.warnings)


def _missing_results(entries: Sequence[Entry]) -> tuple[MessageEntry, ...]:
    """Results that say "no result" for the calls of the newest reply that lack one.

    So other programs need not be able to repair a session that ends after a call.
    """
    waiting: dict[str, ToolCall] = {}
    for entry in entries:
        match entry:
            case MessageEntry(message=AssistantMessage() as reply):
                waiting = {call.id: call for call in reply.tool_calls}
            case MessageEntry(message=ToolResultMessage() as result):
                waiting.pop(result.tool_call_id, None)
            case _:
                pass
    return tuple(MessageEntry(message=_lost_result(call)) for call in waiting.values())


def _keep_contents(session: Path, entries: Sequence[Entry], contents: Mapping[str, bytes]) -> None:
    """Store the earlier contents of files that `entries` name beside the session, if possible."""
    kept = KeptFiles(folder_of(session))
    for entry in entries:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage):
            content = contents.get(entry.message.tool_details.digest_before)
            if content is not None:
                kept.keep(content)


def _lost_result(call: ToolCall) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=(TextContent(text=NO_RESULT_TEXT),),
        is_error=True,
    )


def _chained(taken: Sequence[Entry], added: Sequence[Entry]) -> tuple[Entry, ...]:
    """`taken` unchanged, and `added` as a chain below its last entry."""
    ids = {entry.id for entry in taken}
    entries = list(taken)
    for entry in added:
        changes = {"id": new_entry_id(ids), "parent_id": entries[-1].id}
        entries.append(entry.model_copy(update=changes))
        ids.add(changes["id"])
    return tuple(entries)


def _header(foreign: Header, cwd: Path) -> Header:
    """The header of the new session, with safe values for its file name."""
    folder = foreign.cwd if Path(foreign.cwd).is_absolute() else str(cwd)
    changes: dict[str, object] = {
        "version": FORMAT_VERSION,
        "id": str(uuid4()),
        "timestamp": sound_timestamp(foreign.timestamp),
        "cwd": folder.replace("\0", ""),
    }
    return foreign.model_copy(update=changes)
