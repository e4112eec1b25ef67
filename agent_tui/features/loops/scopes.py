"""Scopes of a conversation: which are open, and what is written and shown as they end."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.part import Host
from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.events import Notice, ScopeEntered, ScopeLeft, ScopeProgress
from agent_tui.features.loops.summary import ScopeRequest, ScopeSummariser
from agent_tui.features.loops.tool import ScopeAction, Scopes
from agent_tui.messages import AssistantMessage, ToolDetails, ToolResultMessage
from agent_tui.providers.base import ProviderError
from agent_tui.safe_paths import real_path
from agent_tui.secret_text import mask_values
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import BranchSummaryEntry, CustomMessageEntry, Entry, MessageEntry
from agent_tui.sessions.replay.marks import replies_of_results
from agent_tui.sessions.replay.pins import pin_of
from agent_tui.sessions.replay.scope_entries import (
    ScopeBreak,
    ScopeEnding,
    ScopeEnter,
    ScopeExit,
    ScopeKind,
    ScopeMark,
    ScopePending,
    ScopeStep,
    mark_entry,
    mark_of,
)
from agent_tui.tools.base import ToolOutput

_ContextEntry: TypeAlias = MessageEntry | CustomMessageEntry | BranchSummaryEntry


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope that has not been left.

    Attributes:
        id: Id of the entry that begins it.
        begun: The content of that entry.
        step: The present round of a loop.
        is_broken: Whether the model wants to leave the loop after this round.
    """

    id: str
    begun: ScopeEnter
    step: ScopeStep | None = None
    is_broken: bool = False


@dataclass(frozen=True, slots=True)
class ScopeState:
    """The scopes after some entry.

    Attributes:
        open_scopes: Those that have not ended, from the outermost to the innermost.
        pending: The scope inside them that has ended and waits for its summary, if any.
    """

    open_scopes: tuple[Scope, ...] = ()
    pending: ScopePending | None = None


def scope_state(path: Sequence[Entry]) -> ScopeState:
    """The state after the last entry of `path` (root to leaf).

    Leaving a scope leaves all scopes opened inside it. Marks of scopes that are not open are
    ignored: they may have begun in another session.
    """
    scopes: list[Scope] = []
    pending: ScopePending | None = None
    for entry in path:
        match mark_of(entry):
            case ScopeEnter() as begun:
                scopes.append(Scope(entry.id, begun))
            case ScopeStep() as step:
                scopes = [replace(s, step=step) if s.id == step.scope else s for s in scopes]
            case ScopeBreak(scope=left):
                scopes = [replace(s, is_broken=True) if s.id == left else s for s in scopes]
            case ScopePending() as ended if (at := _index_of(scopes, ended.scope)) is not None:
                del scopes[at + 1 :]
                pending = ended
            case ScopeExit(scope=left) if (at := _index_of(scopes, left)) is not None:
                del scopes[at:]
                pending = None
            case _:
                pass
    return ScopeState(tuple(scopes if pending is None else scopes[:-1]), pending)


def pending_mark(
    path: Sequence[Entry], scope: Scope, ending: ScopeEnding = "done"
) -> ScopePending | None:
    """The mark that `scope`, open on `path`, waits for its summary; None if the scope is empty."""
    inside = entries_inside(path, scope.id)
    if not inside:
        return None
    return ScopePending(
        scope=scope.id,
        kind=scope.begun.kind,
        label=scope.begun.label,
        prompt=scope.begun.prompt or None,
        entries=tuple(entry.id for entry in inside),
        at=path[-1].id,
        ending=ending,
    )


def entries_inside(path: Sequence[Entry], scope_id: str) -> tuple[_ContextEntry, ...]:
    """What the model sees of the entries since the scope `scope_id` began, oldest first.

    Removing them all separates no call from its result: results of calls from before the scope are
    left out, and so is the newest reply while it waits for results. Entries that a compaction has
    replaced since are not included.
    """
    start = next((at for at, entry in enumerate(path) if entry.id == scope_id), len(path))
    seen = {item.entry_id for item in build_context(path).messages}
    present = [
        entry
        for entry in path[start + 1 :]
        if isinstance(entry, _ContextEntry) and entry.id in seen and pin_of(entry) is None
    ]
    return _without_lone_calls(present)


def _without_lone_calls(entries: Sequence[_ContextEntry]) -> tuple[_ContextEntry, ...]:
    """`entries` without results of calls outside them and without a reply that still waits."""
    messages = {entry.id: entry.message for entry in entries if isinstance(entry, MessageEntry)}
    reply_of = dict(replies_of_results(entries))
    results = {key for key, said in messages.items() if isinstance(said, ToolResultMessage)}
    left_out = results - reply_of.keys()
    for newest, reply in reversed(messages.items()):
        if isinstance(reply, AssistantMessage):
            answers = {result for result, asked in reply_of.items() if asked == newest}
            if len(answers) < len(reply.tool_calls):
                left_out |= {newest, *answers}
            break
    return tuple(entry for entry in entries if entry.id not in left_out)


def _index_of(scopes: Sequence[Scope], scope_id: str) -> int | None:
    return next((at for at, scope in enumerate(scopes) if scope.id == scope_id), None)


_UNFINISHED = (
    "{label} ended, but the program stopped before summarising it. /retry summarises it now; "
    "if you do anything else, it stays as it is."
)
_BROKEN_OFF = (
    "{label} was interrupted{where} when the program stopped. The conversation so far is kept; "
    "to run the rest, start a new loop."
)


class ScopeKeeper:
    """Opens and closes the scopes of one conversation.

    A scope that needs a summary is first marked as waiting in the file. The summary is one entry,
    written when it is complete: failing or cancelling changes nothing else.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    @property
    def _conversation(self) -> Conversation:
        return self._host.conversation

    @property
    def pending(self) -> ScopePending | None:
        """The scope that waits for its summary, if any."""
        return self._state.pending

    def enter(
        self, kind: ScopeKind, label: str, emit: Emit, *, is_compressed: bool, prompt: str = ""
    ) -> str:
        """Begin a scope; returns its id."""
        begun = ScopeEnter(
            kind=kind,
            label=self._mask(label),
            is_compressed=is_compressed,
            prompt=self._mask(prompt),
        )
        scope_id = self._append(begun)
        emit(ScopeEntered(scope_id, begun.label))
        return scope_id

    def begin_step(self, scope_id: str, number: int, count: int, item: str | None) -> None:
        """Record that a loop starts its next round."""
        shown = None if item is None else self._mask(item)
        self._append(ScopeStep(scope=scope_id, number=number, count=count, item=shown))

    def is_broken(self, scope_id: str) -> bool:
        """Whether the model wants to leave that loop."""
        return any(s.id == scope_id and s.is_broken for s in self._state.open_scopes)

    async def leave(self, scope_id: str, emit: Emit, ending: ScopeEnding = "done") -> None:
        """End a scope and all scopes open in it, with a summary for each that wants one.

        If the outer scope gets a summary, the inner ones need none.

        Raises:
            CompactionError, ProviderError: The summary failed and is still pending.
        """
        scopes = _open_from(self._state, scope_id)
        for inner in reversed(scopes[1:]):
            if scopes[0].begun.is_compressed:
                self._close(inner, "stopped", emit)
            else:
                await self._end(inner, "stopped", emit)
        await self._end(scopes[0], ending, emit)

    def stop(self, scope_id: str, emit: Emit) -> None:
        """Leave a scope and all scopes open in it at once, without a summary."""
        self._give_up_pending(emit)
        for scope in reversed(_open_from(self._state, scope_id)):
            self._close(scope, "stopped", emit)

    def give_up_unfinished(self, emit: Emit) -> None:
        """Leave a scope that waits for its summary, and loops that no longer run, as they are."""
        self._give_up_pending(emit)
        scopes = self._state.open_scopes
        loop = next((scope for scope in scopes if scope.begun.kind == "loop"), None)
        if loop is not None:
            self.stop(loop.id, emit)

    async def finish(self, pending: ScopePending, emit: Emit) -> bool:
        """Write the summary that `pending` waits for; false if a summary is not worth it.

        Raises:
            CompactionError, ProviderError: The summary failed and is still pending.
        """
        conversation = self._conversation
        request = await asyncio.to_thread(self._request, pending, self._path)
        emit(ScopeProgress("reading the conversation", 0))
        services = conversation.services
        summariser = ScopeSummariser(services.client, services.counter)
        try:
            summary = await summariser.summarise(
                request,
                lambda phase, chars: emit(ScopeProgress(phase, chars)),
                conversation.counting(emit),
            )
        except NothingToCompactError:
            self._exit(pending.exit_without_summary(pending.ending), emit)
            return False
        summary = self._mask(summary)
        before = conversation.usage.used
        after = await asyncio.to_thread(self._size_with, summary, request, before)
        self._host.drop_planned_compaction()
        self._exit(pending.exit_with(summary, before, after), emit)
        emit(conversation.use_window(after))
        return True

    async def answer_call(
        self, action: ScopeAction, label: str, focus: str, emit: Emit
    ) -> ToolOutput:
        """Carry out the model's `scope` call; returns its result."""
        scopes = self._state.open_scopes
        loop = next((s for s in reversed(scopes) if s.begun.kind == "loop"), None)
        match action:
            case "enter":
                scope_id = self.enter("tool", label, emit, is_compressed=True, prompt=focus)
                return _output(f"Entered {label} ({scope_id}). Exit when it is done.")
            case "break" if loop is not None:
                self._append(ScopeBreak(scope=loop.id))
                return _output(f"{loop.begun.label} ends after this turn. Finish the turn.")
            case "exit" | "break":
                if not scopes or scopes[-1].begun.kind == "loop":
                    return ToolOutput("You have no open scope.", is_error=True)
                ending = "done" if action == "exit" else "break"
                return await self._leave_own(scopes[-1], ending, emit)

    def notices(self) -> tuple[Notice, ...]:
        """Notices about unfinished scopes for the user who opens this session."""
        if self._conversation.log.is_read_only:
            return ()
        state = self._state
        if state.pending is not None:
            return (Notice("warning", _UNFINISHED.format(label=state.pending.label)),)
        loops = (scope for scope in state.open_scopes if scope.begun.kind == "loop")
        return tuple(Notice("warning", _interruption_note(loop)) for loop in islice(loops, 1))

    def _give_up_pending(self, emit: Emit) -> None:
        if (pending := self.pending) is not None:
            self._exit(pending.exit_without_summary("stopped"), emit)

    async def _leave_own(self, scope: Scope, ending: ScopeEnding, emit: Emit) -> ToolOutput:
        """Leave a scope that the model opened; if the summary fails, the messages stay."""
        left = f"Left {scope.begun.label} ({scope.id})"  # the id tells repeated calls apart
        try:
            is_summed_up = await self._end(scope, ending, emit)
        except (CompactionError, ProviderError) as error:
            self._close(scope, ending, emit)
            return ToolOutput(f"{left}, but it was not summarised. {error}", is_error=True)
        if is_summed_up:
            return _output(f"{left}. Its summary replaces it; recall finds the rest.")
        return _output(f"{left}. Not summarised: it was short.")

    async def _end(self, scope: Scope, ending: ScopeEnding, emit: Emit) -> bool:
        """Leave a scope, with a summary if it wants one; returns whether it got one."""
        path = self._path
        pending = None
        if scope.begun.is_compressed:
            pending = await asyncio.to_thread(pending_mark, path, scope, ending)
        if pending is None:
            self._close(scope, ending, emit)
            return False
        for event in await self._conversation.refresh_usage():
            emit(event)
        self._append(pending)
        return await self.finish(pending, emit)

    def _close(self, scope: Scope, ending: ScopeEnding, emit: Emit) -> None:
        """Leave a scope without a summary."""
        self._exit(ScopeExit(scope=scope.id, label=scope.begun.label, ending=ending), emit)

    def _exit(self, mark: ScopeExit, emit: Emit) -> None:
        exit_id = self._append(mark)
        emit(ScopeLeft(exit_id, mark.label, mark.summary, mark.tokens_before, mark.tokens_after))

    def _append(self, mark: ScopeMark) -> str:
        return self._conversation.log.append(mark_entry(mark)).id

    def _request(self, pending: ScopePending, path: tuple[Entry, ...]) -> ScopeRequest:
        conversation = self._conversation
        wanted = set(pending.entries)
        first = next((at for at, entry in enumerate(path) if entry.id in wanted), len(path))
        begun = next((at for at, entry in enumerate(path) if entry.id == pending.scope), first)
        steps = (e for e in path[begun:] if isinstance(mark_of(e), ScopeStep))
        told = wanted | {entry.id for entry in steps}
        return ScopeRequest(
            label=pending.label,
            entries=tuple(entry for entry in path if entry.id in told),
            replaced_tokens=self._tokens_of(pending),
            prompt=pending.prompt,
            model=conversation.model,
            info=conversation.model_info,
            folders=(str(conversation.cwd), str(real_path(conversation.cwd))),
        )

    def _tokens_of(self, pending: ScopePending) -> int:
        """Estimated tokens, in the present context, of what the summary will replace."""
        wanted, conversation = set(pending.entries), self._conversation
        seen = conversation.context().messages
        return conversation.services.counter.count_messages(
            m.message for m in seen if m.entry_id in wanted
        )

    def _size_with(self, summary: str, request: ScopeRequest, before: int) -> int:
        """Tokens of the next request with `summary` in it; `before` is what it has now."""
        conversation, counter = self._conversation, self._conversation.services.counter
        seen = conversation.context().messages
        estimated = conversation.overhead_tokens() + counter.count_messages(
            item.message for item in seen
        )
        after = estimated - request.replaced_tokens + counter.count_text(summary)
        return before * after // max(estimated, 1)

    def _mask(self, text: str) -> str:
        return mask_values(text, self._conversation.services.secrets)

    @property
    def _state(self) -> ScopeState:
        return scope_state(self._path)

    @property
    def _path(self) -> tuple[Entry, ...]:
        return self._conversation.log.path_entries()


def _open_from(state: ScopeState, scope_id: str) -> tuple[Scope, ...]:
    """The scope with that id and those opened inside it, outermost first."""
    ids = [scope.id for scope in state.open_scopes]
    return state.open_scopes[ids.index(scope_id) :]


def _interruption_note(loop: Scope) -> str:
    """The note about a loop that was running when the program stopped."""
    step = loop.step
    where = f" in round {step.number} of {step.count}" if step is not None else ""
    if step is not None and step.item is not None:
        where += f" ({step.item})"
    return _BROKEN_OFF.format(label=loop.begun.label, where=where)


def _output(text: str) -> ToolOutput:
    return ToolOutput(text, ToolDetails(summary=text.partition(".")[0]))


@dataclass(frozen=True, slots=True)
class TurnScopes(Scopes):
    """The scopes of a conversation in one turn, whose events `emit` takes."""

    keeper: ScopeKeeper
    emit: Emit

    async def answer_call(self, action: ScopeAction, label: str, focus: str) -> ToolOutput:
        """Carry out the model's `scope` call; returns its result."""
        return await self.keeper.answer_call(action, label, focus, self.emit)
