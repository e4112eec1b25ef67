"""Undo the newest compaction of a conversation."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.session.earlier import open_to_continue
from agent_tui.agent.session.opening import missing_changes
from agent_tui.errors import CompactionError
from agent_tui.events import AgentEvent, ContextWarning, Notice
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    SessionInfoEntry,
)
from agent_tui.sessions.file.kept_files import folder_of
from agent_tui.sessions.lineage.chain import (
    is_of_another_program,
    parent_file,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import changes_context, newest_change, report_of, undo_mark
from agent_tui.sessions.replay.marks import is_mark
from agent_tui.sessions.replay.notes import was_kept_by_hook
from agent_tui.sessions.replay.scope_entries import ScopePending, mark_of
from agent_tui.sessions.store import SessionStore


async def undo_compaction(runtime: AgentRuntime) -> tuple[AgentEvent, ...]:
    """Undo the newest compaction; if it began a session, return to the earlier session.

    Raises:
        CompactionError: There is none to undo.
        SessionError: It cannot be written, or the earlier session cannot be opened.
    """
    sessions = runtime.sessions
    sessions.prepare_to_write()
    before = runtime.conversation
    newest = before.log.leaf_id
    earlier = await _undo_newest(before.log, runtime.services.store, before.cwd)
    runtime.drop_planned_compaction()
    events: tuple[AgentEvent, ...] = ()
    if earlier is not None:
        log = earlier.log
        if runtime.is_busy or before.log.leaf_id != newest:  # work began during the reading
            log.close()
            raise CompactionError("Not undone: a turn has started.", "Undo when it is done.")
        events = sessions.continue_in(log)
        conversation = runtime.conversation
        log.append_many(missing_changes(log, before.model, conversation.thinking))
        if before.log.path is not None:
            kept = folder_of(before.log.path)
            await asyncio.to_thread(conversation.kept_files.adopt, kept)
        left_out = [_omission_note(before.log)] if earlier.left_out else []
        events += tuple(Notice("warning", note) for note in (*left_out, *log.warnings))
    conversation = runtime.conversation
    counted = await conversation.refresh_usage()
    conversation.left_by_compaction = conversation.usage.used
    return (*events, *(e for e in counted if not isinstance(e, ContextWarning)))


@dataclass(frozen=True, slots=True)
class _EarlierSession:
    """The session to return to; `left_out` counts later messages that it lacks."""

    log: SessionLog
    left_out: int


async def _undo_newest(log: SessionLog, store: SessionStore, cwd: Path) -> _EarlierSession | None:
    """Undo the newest compaction of `log`.

    Returns:
        None if one more entry undid it; else the session that `log` was compacted from, with the
        messages since then at its end.

    Raises:
        CompactionError: There is none, or the messages it replaced were never stored.
        SessionError: The entry cannot be written, or the earlier session cannot be opened.
    """
    path = log.path_entries()
    changes = newest_change(path)
    begins_compacted = bool(path) and isinstance(path[0], CompactionEntry)
    if changes and not (begins_compacted and changes == (path[0].id,)):
        log.append(undo_mark(changes))
        return None
    if not begins_compacted and log.header.compaction is None:
        raise CompactionError("Nothing to undo: this conversation was not compacted.")
    if not log.header.parent_session or log.path is None:
        raise CompactionError("Nothing to undo: the session before the compaction was not kept.")
    return await asyncio.to_thread(_reopen, log, log.header.parent_session, store, cwd)


def _reopen(log: SessionLog, parent: str, store: SessionStore, cwd: Path) -> _EarlierSession:
    """Open the parent of `log`, without later messages if it was continued meanwhile."""
    earlier, written = _open_parent(*_before_compaction(log, parent, store), store, cwd)
    known = {entry.id for entry in earlier.entries}
    since = [entry for entry in log.path_entries() if entry.id not in known and _goes_back(entry)]
    if _was_gone_on_with(written, log):
        return _EarlierSession(earlier, left_out=sum(map(_is_said, since)))
    if since:
        try:
            # After this mark, sizes stated in these replies (of the compacted context) do not
            # count.
            earlier.append_many((*since, undo_mark(newest_change(log.path_entries()))))
        except BaseException:
            earlier.close()
            raise
    return _EarlierSession(earlier, left_out=0)


def _before_compaction(
    log: SessionLog, parent: str, store: SessionStore
) -> tuple[str, Path | None]:
    """The session `log` was compacted from, and the file that names it; forks may lie between."""
    child = log.path
    first = next((entry.id for entry in log.path_entries()), "")
    walked: set[Path] = set()
    file = parent_file(parent, child, store)
    while (
        file is not None and file not in walked and not is_of_another_program(file, store.formats)
    ):
        walked.add(file)
        between = SessionLog.open(file, read_only=True)
        grandparent = between.header.parent_session
        if not grandparent or all(entry.id != first for entry in between.entries[:1]):
            break
        parent, child = grandparent, file
        file = parent_file(parent, child, store)
    return parent, child


def _open_parent(
    parent: str, child: Path | None, store: SessionStore, cwd: Path
) -> tuple[SessionLog, Sequence[Entry]]:
    """Open the session that `child` names as its parent for writing; also returns its entries.

    Other agents' files are never written: such a session is copied.
    """
    file = parent_file(parent, child, store)
    return open_to_continue(str(file or parent), file, store, cwd)


def _was_gone_on_with(written: Sequence[Entry], child: SessionLog) -> bool:
    """Whether `written` has messages later than the start of `child` that `child` lacks."""
    own = {entry.id for entry in child.entries}
    begun = child.header.timestamp
    return any(_is_said(e) and e.timestamp > begun and e.id not in own for e in written)


def _goes_back(entry: Entry) -> bool:
    """Whether `entry` belongs in the earlier session; names and context changes do not."""
    is_change = (changes_context(entry) and not is_mark(entry)) or report_of(entry) is not None
    awaits_change = isinstance(mark_of(entry), ScopePending)
    is_of_change = awaits_change or was_kept_by_hook(entry)
    return not (is_change or is_of_change or isinstance(entry, SessionInfoEntry))


def _is_said(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry | CustomMessageEntry | BranchSummaryEntry)


def _omission_note(child: SessionLog) -> str:
    """The note about a session left behind with messages that the earlier one lacks."""
    return (
        "The earlier session has been continued, so it lacks the messages since the compaction. "
        f"/resume {child.header.id[:8]} opens the session that has them."
    )
