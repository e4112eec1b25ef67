"""Going back to earlier messages of a session, marking them, and summarizing the branch left."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.compaction.candidates import candidates
from agent_tui.compaction.plan import read_live
from agent_tui.compaction.summary.writer import Writer
from agent_tui.errors import CompactionError, SessionError
from agent_tui.events import AgentEvent, BranchSummaryProgress, Notice
from agent_tui.features.tree.branch_summary import (
    BranchRequest,
    BranchSummary,
    summarise_branch,
)
from agent_tui.sessions.entries import BranchSummaryEntry, Entry, LabelEntry, MessageEntry
from agent_tui.sessions.lineage.joined import ContinuationPoint, JoinedTree
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import in_force
from agent_tui.sessions.replay.marks import Mark, mark_entry, read_marks

_LEFT = "This is the session before the compaction. /resume {id} returns to the one you left."
_ROOT = "root"
"""The place that a summary names if the conversation restarts at its beginning, as in pi."""


class Branches:
    """Goes back to earlier entries of a runtime's present session, forks it there, and marks them.

    Args:
        runtime: Holds the present session.
    """

    def __init__(self, runtime: AgentRuntime) -> None:
        self._runtime = runtime
        self._sessions = runtime.sessions

    async def place_of(self, entry_id: str) -> ContinuationPoint:
        """The place at which `go_back` continues. Reads earlier sessions until the entry is found.

        Args:
            entry_id: As in `trees`.

        Raises:
            SessionError: There is no such entry.
        """
        tree = await asyncio.to_thread(_first, self.trees(), lambda tree: tree.has(entry_id))
        return tree.place(entry_id)

    async def last_said(self) -> ContinuationPoint | None:
        """The place before the user's last message, here or before a compaction; None if none."""
        tree = await asyncio.to_thread(_first, self.trees(), lambda t: t.last_said() is not None)
        entry_id = tree.last_said()
        return tree.place(entry_id) if entry_id is not None else None

    def trees(self) -> Iterator[JoinedTree]:
        """Yield the present session as a tree, then joined with each one it was compacted from.

        Each step reads a file; use one thread at a time.
        """
        return self._sessions.trees()

    async def go_back(self, entry_id: str) -> tuple[AgentEvent, ...]:
        """Call `go_to` with an entry id, as in `trees`.

        Raises:
            AgentTuiError: As `go_to`, or there is no such entry.
        """
        return await self.go_to(await self.place_of(entry_id))

    async def go_to(self, place: ContinuationPoint) -> tuple[AgentEvent, ...]:
        """Continue from an earlier entry, or before an earlier message of the user's.

        The text of such a message comes back in `WentBack`. Nothing is written until a message is
        sent there; it starts a new branch, and the other one stays. If the entry is from before a
        compaction that began the session, the earlier session is opened in place of the present
        one.

        Raises:
            AgentTuiError: Something runs.
            SessionError: The session is open read-only, or the earlier one cannot be opened.
        """
        self._require_present(place)
        if self._is_here(place):
            return (Notice("info", "You are already there."),)
        if not place.later:
            self._sessions.conversation.log.branch_to(place.leaf_id)
            return await self._continue_here(place)
        log = await self._sessions.open_earlier(place)
        self._sessions.require_still_idle(log)
        log.branch_to(place.leaf_id)
        return await self._continue_in(log, place)

    async def check(self, place: ContinuationPoint) -> None:
        """Check in advance, as far as possible, that `go_to` can go to `place`.

        Raises:
            AgentTuiError: As `go_to`.
        """
        self._require_present(place)
        if place.later:
            (await self._sessions.open_earlier(place)).close()

    def go_back_with_summary(self, entry_id: str) -> AsyncGenerator[AgentEvent, None]:
        """Like `go_back`, as an activity that first summarizes the branch that is left.

        If there is nothing to summarize, it goes back anyway and says so. On abort, or if
        the summary cannot be written, the conversation stays where it was.
        """
        return self._runtime.run(lambda emit: self._go_back_with_summary(entry_id, emit))

    async def _go_back_with_summary(self, entry_id: str, emit: Emit) -> None:
        sessions = self._sessions
        sessions.require_writable()
        tree = await asyncio.to_thread(_first, self.trees(), lambda tree: tree.has(entry_id))
        place = tree.place(entry_id)
        if self._is_here(place):
            emit(Notice("info", "You are already there."))
            return
        remark = ""
        try:
            summary = await self._summarise(_entries_left(tree, entry_id, place), emit)
        except CompactionError as error:
            summary, remark = None, f"Went back without a summary. {error}"
        except asyncio.CancelledError:
            emit(Notice("warning", "Cancelled. Nothing changed."))
            raise
        log, left_at = sessions.conversation.log, sessions.conversation.log.leaf_id
        try:
            if place.later:
                log = await sessions.open_earlier(place)
            log.branch_to(place.leaf_id)
            if summary is not None:
                log.append(
                    BranchSummaryEntry(
                        from_id=place.leaf_id or _ROOT, summary=summary.text, usage=summary.usage
                    )
                )
                remark = summary.note
            events = await (
                self._continue_in(log, place) if place.later else self._continue_here(place)
            )
        except SessionError as error:
            if log is not sessions.conversation.log:
                log.close()
            sessions.conversation.log.branch_to(left_at)
            emit(Notice("error", f"Could not go back: {error}"))
            return
        for event in events:
            emit(event)
        if remark:
            emit(Notice("warning", remark))

    async def fork(self, entry_id: str | None = None) -> tuple[AgentEvent, ...]:
        """Continue in a copy of this session as it is now, or as it was at `entry_id`.

        A user's message there is left out and returned for the prompt, as by `go_back`.

        Raises:
            AgentTuiError: Something runs.
            SessionError: There is nothing to copy, or the copy cannot be written.
        """
        sessions = self._sessions
        sessions.require_idle()
        if entry_id is None:
            return await sessions.fork_at(sessions.conversation.log.leaf_id)
        place = await self.place_of(entry_id)
        changes = await sessions.fork_at(place.leaf_id, place.session if place.later else None)
        if place.said is None:
            return changes
        return (*changes, *sessions.branch_events(place.text, place.image_count))

    async def label(self, entry_id: str, text: str) -> None:
        """Put a bookmark on an entry, as in `trees`; an empty text removes it.

        Raises:
            SessionError: There is no such entry, or the bookmark cannot be written.
        """
        self._sessions.require_writable()
        place = await self.place_of(entry_id)
        label = LabelEntry(target_id=place.entry.id, label=text.strip() or None)
        if not place.later:
            self._sessions.conversation.log.append(label)
            return
        with await self._sessions.open_earlier(place) as log:
            log.append(label)

    async def mark(self, entry_id: str, mark: Mark | None) -> None:
        """Mark what should happen to a message in the context; None removes the mark.

        Args:
            entry_id: As in `trees`.
            mark: The new mark.

        Raises:
            AgentTuiError: Something runs, the message is not in the context, kept messages would
                leave no space, or the mark cannot be written.
        """
        sessions = self._sessions
        sessions.require_idle()
        sessions.prepare_to_write()
        await mark_message(sessions.conversation, entry_id, mark)
        self._runtime.drop_planned_compaction()
        await sessions.conversation.refresh_usage()

    def _require_present(self, place: ContinuationPoint) -> None:
        self._sessions.require_idle()
        self._sessions.require_writable()
        present = (place.session, *place.later)[-1]
        if present.id != self._sessions.conversation.log.header.id:
            raise SessionError("Could not go back: another session was opened in the meantime.")

    def _is_here(self, place: ContinuationPoint) -> bool:
        at = self._sessions.conversation.log.leaf_id
        return not place.later and place.said is None and place.leaf_id == at

    async def _continue_here(self, place: ContinuationPoint) -> tuple[AgentEvent, ...]:
        """Continue at the leaf that the session's log was moved to; returns the events."""
        self._sessions.branch_to(self._sessions.conversation.log.leaf_id)
        return await self._events_after_move(place)

    async def _continue_in(
        self, log: SessionLog, place: ContinuationPoint
    ) -> tuple[AgentEvent, ...]:
        """Continue in `log`, an earlier session; returns the events."""
        left = self._sessions.conversation.log.header.id
        changes = await self._sessions.go_on_in_earlier(log, place)
        note = Notice("info", _LEFT.format(id=left[:8])) if place.later[-1].path else None
        return (*changes, *await self._events_after_move(place), *((note,) if note else ()))

    async def _events_after_move(self, place: ContinuationPoint) -> tuple[AgentEvent, ...]:
        sessions = self._sessions
        events = sessions.branch_events(place.text, place.image_count)
        counted = await sessions.conversation.refresh_usage()
        if not sessions.conversation.is_overfull:
            return (*events, *counted)
        note = "This exceeds the context window; it will be compacted before it is sent."
        return (*events, *counted, Notice("warning", note))

    async def _summarise(self, left: tuple[Entry, ...], emit: Emit) -> BranchSummary:
        conversation = self._sessions.conversation
        ratio = conversation.services.ratios.ratio(conversation.model.name)
        request = BranchRequest(
            entries=left,
            model=conversation.model,
            window=round(conversation.model_info.window / ratio),
            cwd=conversation.cwd,
            settings=conversation.settings,
        )
        planner = self._runtime.planner
        return await summarise_branch(
            request,
            Writer(planner.client, planner.counter) if planner.client is not None else None,
            candidates(planner.models, request.settings, request.model),
            planner.counter,
            lambda phase, chars: emit(BranchSummaryProgress(phase, chars)),
            conversation.counting(emit),
        )


def _first(trees: Iterator[JoinedTree], is_wanted: Callable[[JoinedTree], bool]) -> JoinedTree:
    """The first tree that is wanted, else the last one. Reads files."""
    tree = next(trees)
    while not is_wanted(tree):
        following = next(trees, None)
        if following is None:
            break
        tree = following
    return tree


def _entries_left(tree: JoinedTree, entry_id: str, place: ContinuationPoint) -> tuple[Entry, ...]:
    """The entries of the present branch that are not on the path to `place`."""
    kept = {entry.id for entry in tree.path_to(entry_id)}
    if place.said is not None:
        kept.discard(entry_id)
    return tuple(entry for entry in tree.path if entry.id not in kept)


async def mark_message(conversation: Conversation, entry_id: str, mark: Mark | None) -> None:
    """Write the mark of a message; None removes it.

    Raises:
        SessionError: The message is not in the context, or kept messages would leave no space.
    """
    log = conversation.log
    path = log.path_entries()
    seen = {item.entry_id for item in conversation.context().messages}
    marked = read_marks(in_force(path)).by_id.keys()
    is_message = any(entry.id == entry_id and isinstance(entry, MessageEntry) for entry in path)
    if not is_message or entry_id not in seen | marked:
        raise SessionError("Only messages that are in the context now can be marked.")
    entry = mark_entry(entry_id, mark)
    if mark in ("keep", "pin"):
        await asyncio.to_thread(_require_room, conversation, (*path, entry))
    log.append(entry)


def _require_room(conversation: Conversation, path: Sequence[Entry]) -> None:
    """Refuse a mark if a compaction could no longer reach its target with it."""
    ratio = conversation.services.ratios.ratio(conversation.model.name)
    live = read_live(in_force(path), conversation.services.counter)
    needed = round((live.pinned_tokens + conversation.overhead_tokens()) * ratio)
    target = conversation.limits.target
    if needed > target:
        raise SessionError(
            f"Not marked: with the system prompt, what is kept would take {needed:,} tokens, and a "
            f"compaction leaves {target:,}.",
            "Clear another mark, or raise compaction.target.",
        )
