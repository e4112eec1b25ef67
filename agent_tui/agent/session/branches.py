"""Going back to an earlier message of a session, and what is kept of the branch that is left."""

import asyncio
from dataclasses import dataclass

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import add_totals
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.session.manager import SessionManager
from agent_tui.attachments import without_attachments
from agent_tui.compaction.branch import BranchRequest, BranchSummary
from agent_tui.errors import CompactionError, SessionError
from agent_tui.events import AgentEvent, BranchSummaryProgress, Notice
from agent_tui.messages import Usage, UserMessage
from agent_tui.sessions.entries import BranchSummaryEntry, Entry, LabelEntry, MessageEntry
from agent_tui.sessions.lineage.forking import path_to
from agent_tui.sessions.log import SessionLog

_ROOT = "root"
"""What a summary names as its place where the conversation begins anew, as pi does."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where to go on: the entry that the next one follows, and what belongs into the prompt."""

    leaf_id: str | None
    text: str = ""
    image_count: int = 0


class Branches:
    """Goes back to earlier entries of the present session, and forks it there."""

    def __init__(self, sessions: SessionManager, services: RuntimeServices) -> None:
        self._sessions = sessions
        self._services = services

    async def go_back(self, entry_id: str) -> tuple[AgentEvent, ...]:
        """Go on from an earlier entry, or before an earlier message of the person's.

        The text of such a message comes back in `WentBack`. Nothing is written before
        something is said there; then that becomes a new branch, and the other one stays.

        Raises:
            AgentTuiError: Something runs.
            SessionError: There is no such entry, or the session is open read-only.
        """
        self._sessions.require_idle()
        place = self._place(entry_id)
        if _is_here(self._sessions.conversation.log, place):
            return (Notice("info", "The conversation is there already."),)
        self._sessions.branch_to(place.leaf_id)
        return await self._shown(place)

    def leaf_for(self, entry_id: str) -> str | None:
        """Which entry `go_back` goes on from; None for none.

        Raises:
            SessionError: There is no such entry.
        """
        return _place_of(self._sessions.conversation.log, entry_id).leaf_id

    async def go_back_with_summary(self, entry_id: str, emit: Emit) -> None:
        """The same, with a summary of what is left in the place that is gone on from."""
        sessions = self._sessions
        log = sessions.conversation.log
        place, left_at = self._place(entry_id), log.leaf_id
        if _is_here(log, place):
            emit(Notice("info", "The conversation is there already."))
            return
        remark = ""
        try:
            summary = await self._summarise(_entries_left(log, place.leaf_id), emit)
        except CompactionError as error:
            summary, remark = None, f"Gone back without a summary. {error}"
        except asyncio.CancelledError:
            emit(Notice("warning", "Cancelled: nothing was written, and you are where you were."))
            raise
        sessions.branch_to(place.leaf_id)
        if summary is not None:
            try:
                log.append(
                    BranchSummaryEntry(
                        from_id=place.leaf_id or _ROOT, summary=summary.text, usage=summary.usage
                    )
                )
            except SessionError as error:
                sessions.branch_to(left_at)
                emit(Notice("error", f"Not gone back: {error}"))
                return
            remark = summary.note
        for event in await self._shown(place):
            emit(event)
        if remark:
            emit(Notice("warning", remark))

    async def fork(self, entry_id: str | None = None) -> tuple[AgentEvent, ...]:
        """Go on in a copy of this session as it is now, or as it was at `entry_id`.

        A message of the person's is left out and returned for the prompt, as by `go_back`.

        Raises:
            AgentTuiError: Something runs.
            SessionError: There is nothing to copy, or the copy cannot be written.
        """
        sessions = self._sessions
        sessions.require_idle()
        log = sessions.conversation.log
        place = _Place(log.leaf_id) if entry_id is None else _place_of(log, entry_id)
        changes = await sessions.fork_at(place.leaf_id)
        if not place.text and not place.image_count:
            return changes
        return (*changes, *sessions.branch_events(place.text, place.image_count))

    def label(self, entry_id: str, text: str) -> None:
        """Put a bookmark on an entry of this session; an empty text takes it off.

        Raises:
            SessionError: There is no such entry, or it cannot be written.
        """
        self._sessions.require_writable()
        log = self._sessions.conversation.log
        _entry(log, entry_id)
        log.append(LabelEntry(target_id=entry_id, label=text.strip() or None))

    def _place(self, entry_id: str) -> _Place:
        self._sessions.require_writable()
        return _place_of(self._sessions.conversation.log, entry_id)

    async def _shown(self, place: _Place) -> tuple[AgentEvent, ...]:
        sessions = self._sessions
        events = sessions.branch_events(place.text, place.image_count)
        counted = await sessions.conversation.refresh_usage()
        if not sessions.conversation.is_overfull:
            return (*events, *counted)
        note = "This is more than the window holds: it is compacted before it is sent."
        return (*events, *counted, Notice("warning", note))

    async def _summarise(self, left: tuple[Entry, ...], emit: Emit) -> BranchSummary:
        conversation = self._sessions.conversation

        def count(usage: Usage) -> None:
            conversation.totals = add_totals(conversation.totals, usage)
            emit(conversation.totals)

        ratio = conversation.services.ratios.ratio(conversation.model.name)
        request = BranchRequest(
            entries=left,
            model=conversation.model,
            window=round(conversation.model_info.window / ratio),
            cwd=conversation.cwd,
            settings=conversation.settings,
        )
        return await self._services.compaction.service.summarise_branch(
            request, lambda phase, chars: emit(BranchSummaryProgress(phase, chars)), count
        )


def _is_here(log: SessionLog, place: _Place) -> bool:
    return place == _Place(log.leaf_id)


def _place_of(log: SessionLog, entry_id: str) -> _Place:
    """Before a message of the person's, which can then be said anew; behind anything else."""
    match _entry(log, entry_id):
        case MessageEntry(message=UserMessage() as message, parent_id=parent_id):
            return _Place(parent_id, without_attachments(message.text), len(message.images))
        case _:
            return _Place(entry_id)


def _entry(log: SessionLog, entry_id: str) -> Entry:
    entry = next((entry for entry in log.entries if entry.id == entry_id), None)
    if entry is None:
        raise SessionError(f"Session {log.header.id} has no entry {entry_id}.")
    return entry


def _entries_left(log: SessionLog, leaf_id: str | None) -> tuple[Entry, ...]:
    """What of the present branch is not on the way to `leaf_id`."""
    kept = {entry.id for entry in path_to(log.entries, leaf_id)}
    return tuple(entry for entry in log.path_entries() if entry.id not in kept)
