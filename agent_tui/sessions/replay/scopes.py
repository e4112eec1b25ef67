"""The states of a session's scopes, read from its entries: pure.

Running, then `AwaitingCompress` when a scope that is to be summed up has ended, and with
`resume_with_summary` running again. What is awaited is an entry, so a crash in between loses
nothing.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from agent_tui.errors import ScopeError
from agent_tui.messages import AssistantMessage, ToolResultMessage
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from agent_tui.sessions.replay.pins import pin_of
from agent_tui.sessions.replay.scope_entries import (
    ScopeBreak,
    ScopeEnding,
    ScopeEnter,
    ScopeExit,
    ScopePending,
    ScopeStep,
    mark_entry,
    mark_of,
)

_ContextEntry: TypeAlias = MessageEntry | CustomMessageEntry | BranchSummaryEntry


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope that has not been left.

    Attributes:
        id: Of the entry it begins with.
        begun: What that entry says.
        step: The round a loop is in.
        is_broken: The model wants to leave the loop after this round.
    """

    id: str
    begun: ScopeEnter
    step: ScopeStep | None = None
    is_broken: bool = False


@dataclass(frozen=True, slots=True)
class Running:
    """Nothing is waited for; `open_scopes` from the outermost to the innermost."""

    open_scopes: tuple[Scope, ...] = ()


@dataclass(frozen=True, slots=True)
class AwaitingCompress:
    """The innermost scope has ended and waits for its summary.

    Attributes:
        pending: What the summary is to stand for and to be about.
        outer: The scopes around it, from the outermost on.
    """

    pending: ScopePending
    outer: tuple[Scope, ...] = field(default=())


ScopeState: TypeAlias = Running | AwaitingCompress


def scope_state(path: Sequence[Entry]) -> ScopeState:
    """The state after the last entry of `path` (root to leaf).

    Whoever leaves a scope leaves all that were opened in it. Marks of scopes that are not open
    say nothing: their beginning may have stayed behind in another session.
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
    if pending is None:
        return Running(tuple(scopes))
    return AwaitingCompress(pending, tuple(scopes[:-1]))


def running(path: Sequence[Entry]) -> Running:
    """The state of `path`, where nothing may be waited for.

    Raises:
        ScopeError: A summary is waited for.
    """
    state = scope_state(path)
    if isinstance(state, AwaitingCompress):
        raise ScopeError(f"The scope {state.pending.label} is still waiting for its summary.")
    return state


def await_compress(
    path: Sequence[Entry], scope: Scope, ending: ScopeEnding = "done"
) -> CustomEntry | None:
    """The entry with which `scope`, open on `path`, waits for its summary; None if it is empty.

    Raises:
        ScopeError: It is not open, or a summary is waited for already.
    """
    if all(scope.id != known.id for known in running(path).open_scopes):
        raise ScopeError(f"The scope {scope.begun.label} is not open.")
    inside = entries_inside(path, scope.id)
    if not inside:
        return None
    pending = ScopePending(
        scope=scope.id,
        kind=scope.begun.kind,
        label=scope.begun.label,
        prompt=scope.begun.prompt or None,
        entries=tuple(entry.id for entry in inside),
        at=path[-1].id,
        ending=ending,
    )
    entry = mark_entry(pending)
    assert isinstance(entry, CustomEntry)
    return entry


def resume_with_summary(
    state: ScopeState, summary: str, *, tokens_before: int = 0, tokens_after: int = 0
) -> CustomMessageEntry:
    """The one entry that puts `summary` in the place of what was in the scope, and leaves it.

    Args:
        state: Of the session it is for.
        summary: Stands for the scope's entries from now on.
        tokens_before: Size of the request with them, as measured.
        tokens_after: The same with the summary.

    Raises:
        ScopeError: No summary is waited for, or this one is empty.
    """
    if not isinstance(state, AwaitingCompress):
        raise ScopeError("No scope is waiting for a summary.")
    if not summary.strip():
        raise ScopeError(f"The summary of {state.pending.label} is empty.")
    pending = state.pending
    return _exit_entry(
        ScopeExit(
            scope=pending.scope,
            label=pending.label,
            ending=pending.ending,
            summary=summary.strip(),
            replaces=pending.entries,
            tokens_before=tokens_before,
            tokens_after=tokens_after,
        )
    )


def leave_as_it_is(scope_id: str, label: str, ending: ScopeEnding) -> CustomMessageEntry:
    """The entry that leaves a scope without a summary: what was said in it stays."""
    return _exit_entry(ScopeExit(scope=scope_id, label=label, ending=ending))


def entries_inside(path: Sequence[Entry], scope_id: str) -> tuple[_ContextEntry, ...]:
    """What the model sees of what was said since the scope `scope_id` began, oldest first.

    Taken out together they part no call from its result: a result of a call from before the
    scope stays out, and so does the newest reply while results of it are to come. What a
    compaction in between already stands for is not seen any more.
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
    """`entries` without the results of other calls and without a newest reply that still waits."""
    waiting: defaultdict[str, list[int]] = defaultdict(list)
    reply_of: dict[int, int] = {}
    left_out: set[int] = set()
    newest = -1
    for at, entry in enumerate(entries):
        message = entry.message if isinstance(entry, MessageEntry) else None
        if isinstance(message, AssistantMessage):
            newest = at
            for call in message.tool_calls:
                waiting[call.id].append(at)
        elif isinstance(message, ToolResultMessage):
            if calls := waiting[message.tool_call_id]:
                reply_of[at] = calls.pop()
            else:
                left_out.add(at)
    if any(newest in replies for replies in waiting.values()):
        left_out |= {newest, *(at for at, reply in reply_of.items() if reply == newest)}
    return tuple(entry for at, entry in enumerate(entries) if at not in left_out)


def _index_of(scopes: Sequence[Scope], scope_id: str) -> int | None:
    return next((at for at, scope in enumerate(scopes) if scope.id == scope_id), None)


def _exit_entry(mark: ScopeExit) -> CustomMessageEntry:
    entry = mark_entry(mark)
    assert isinstance(entry, CustomMessageEntry)
    return entry
