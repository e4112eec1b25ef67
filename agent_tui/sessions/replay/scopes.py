"""Which scopes of a session are open, read from its entries: pure.

A scope that is to be summed up waits for that after it has ended. The wait is an entry, so a
crash in between loses nothing.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from agent_tui.messages import AssistantMessage, ToolResultMessage
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
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
class ScopeState:
    """The scopes after some entry.

    Attributes:
        open_scopes: Those that have not ended, from the outermost to the innermost.
        pending: The scope inside them that has ended and waits for its summary, if any does.
    """

    open_scopes: tuple[Scope, ...] = ()
    pending: ScopePending | None = None


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
    return ScopeState(tuple(scopes if pending is None else scopes[:-1]), pending)


def pending_mark(
    path: Sequence[Entry], scope: Scope, ending: ScopeEnding = "done"
) -> ScopePending | None:
    """The mark with which `scope`, open on `path`, waits for its summary; None if it is empty."""
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
