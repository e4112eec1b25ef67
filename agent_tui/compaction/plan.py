"""What a compaction would remove and what it would keep: pure, decided before any model call."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal, TypeAlias

from agent_tui.errors import NothingToCompactError
from agent_tui.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from agent_tui.sessions.context import ContextMessage, build_context, without_dropped
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    Carryover,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from agent_tui.sessions.replay.changes import in_force, newest_compaction
from agent_tui.sessions.replay.marks import read_marks
from agent_tui.sessions.replay.pins import pins_on, removed_pins
from agent_tui.tokens import TokenCounter

LiveEntry: TypeAlias = MessageEntry | CustomMessageEntry | BranchSummaryEntry
"""An entry that can add to the context."""

_Role: TypeAlias = Literal["user", "assistant", "other", "unseen"]

_TAKEN_TOKENS = 1_024
"""Tokens that the shortest prompt, its tools and a summary take of any window."""


@dataclass(frozen=True, slots=True)
class LiveConversation:
    """The entries that no compaction has replaced yet, and where they may be cut.

    Args:
        entries: In file order.
        seen: What the model sees of each, by entry id.
        tokens: The size of each, as the model sees it.
        roles: The role of each.
        cuts: Indexes of user messages and replies at which a cut separates no call from its result.
        end: The last possible cut if nothing has to stay: the end, or before the newest reply if it
            still waits for results.
        pinned: Pinned texts and marked messages, which always stay; not in `entries`.
        pinned_tokens: Their size.
        leaving_tokens: Size of messages marked to stay until this compaction.
    """

    entries: tuple[LiveEntry, ...]
    seen: Mapping[str, Sequence[ContextMessage]]
    tokens: tuple[int, ...]
    roles: tuple[_Role, ...]
    cuts: tuple[int, ...]
    end: int
    pinned: tuple[LiveEntry, ...] = ()
    pinned_tokens: int = 0
    leaving_tokens: int = 0

    @property
    def is_exchange(self) -> bool:
        """Whether the user wrote something and got a reply."""
        return "assistant" in self.roles and "user" in self.roles


@dataclass(frozen=True)
class CompactionPlan:
    """One cut through a conversation.

    Args:
        summarised: The entries that the summary will replace.
        messages: How many messages of them the model sees.
        kept_entries: The entries that stay, in file order, including pinned ones and their context
            edits, also those in `edits`.
        edits: Edits of kept messages that this compaction makes.
        first_kept_entry_id: The first entry that stays; empty if none does.
        summarised_tokens: Estimated size of what the summary replaces, as the model saw it.
        kept_tokens: Estimated size of what stays, with `edits` and pinned texts.
        kept_tokens_now: The same without `edits`.
    """

    summarised: tuple[LiveEntry, ...]
    messages: int
    kept_entries: tuple[Entry, ...]
    edits: tuple[ContextEditEntry, ...]
    first_kept_entry_id: str
    summarised_tokens: int
    kept_tokens: int
    kept_tokens_now: int

    @cached_property
    def left(self) -> Mapping[str, Message]:
        """What the model will see of each message that stays, by entry id, in their order."""
        seen = build_context(self.kept_entries).messages
        return {item.entry_id: item.message for item in seen if item.entry_id}


def read_live(path: Sequence[Entry], counter: TokenCounter) -> LiveConversation:
    """The part of `path` that a compaction can change."""
    changed = in_force(path)
    marks = read_marks(changed)
    staying = {entry.id for entry in pins_on(changed).values()} | marks.staying
    pinned = tuple(e for e in changed if isinstance(e, LiveEntry) and e.id in staying)
    live = live_entries(path)
    leaving = marks.standing - marks.staying - {entry.id for entry in live}
    seen = _messages_by_entry(path)

    def tokens_of(entry: LiveEntry) -> int:
        return sum(counter.count_message(item.message) for item in seen[entry.id])

    roles: list[_Role] = [_role(entry, seen) for entry in live]
    cuts, end = _legal_cuts(live, roles)
    return LiveConversation(
        entries=live,
        seen=seen,
        tokens=tuple(map(tokens_of, live)),
        roles=tuple(roles),
        cuts=tuple(cuts),
        end=end,
        pinned=pinned,
        pinned_tokens=sum(map(tokens_of, pinned)),
        leaving_tokens=sum(
            counter.count_message(item.message) for key in leaving for item in seen[key]
        ),
    )


def choose_cut(live: LiveConversation, kept_tokens: Sequence[int], room: int, window: int) -> int:
    """The first cut after which everything fits into `room` tokens.

    If none fits, the last cut, before the newest reply and its results, if the window can hold
    those; else everything is summarized.

    Args:
        live: The conversation.
        kept_tokens: The size of each entry if it stayed.
        room: Limit of what stays, in tokens.
        window: Context window in tokens.

    Raises:
        NothingToCompactError: There is nothing before the newest reply.
    """
    before = list(accumulate(kept_tokens, initial=0))
    kept = {cut: before[-1] - before[cut] for cut in live.cuts}
    fitting = next((cut for cut in live.cuts if kept[cut] <= room), None)
    if fitting is not None:
        return fitting
    if live.cuts and kept[live.cuts[-1]] <= (window - _TAKEN_TOKENS // 2) // 2:
        return live.cuts[-1]
    if live.end == 0:
        raise NothingToCompactError("Nothing to compact: there is only the newest reply.")
    return live.end


def plan_cut(
    path: Sequence[Entry],
    live: LiveConversation,
    cut: int,
    edits: Mapping[str, ContextEditEntry],
    kept_tokens: Sequence[int],
) -> CompactionPlan:
    """The plan that cuts `live`, of `path`, before its entry `cut`.

    Args:
        path: Entries in force, from the root to the leaf.
        live: The part of it that a compaction can change.
        cut: See `choose_cut`.
        edits: Edits of messages that stay, by entry id.
        kept_tokens: The size of each entry with these edits.
    """
    old, kept = live.entries[:cut], live.entries[cut:]
    seen = [entry for entry in without_dropped(old, read_marks(path)) if live.seen[entry.id]]
    new = tuple(edits[entry.id] for entry in kept if entry.id in edits)
    return CompactionPlan(
        summarised=old,
        messages=len(seen),
        kept_entries=(*_staying(path, live.pinned, kept), *new),
        edits=new,
        first_kept_entry_id=kept[0].id if kept else "",
        summarised_tokens=sum(live.tokens[:cut]),
        kept_tokens=live.pinned_tokens + sum(kept_tokens[cut:]),
        kept_tokens_now=live.pinned_tokens + sum(live.tokens[cut:]),
    )


def previous_summary(path: Sequence[Entry], previous: Carryover | None) -> str:
    """The summary in force: of the newest compaction, else of the parent session."""
    compaction = newest_compaction(path)
    if compaction is not None:
        return compaction.summary
    return previous.summary if previous is not None else ""


def live_entries(path: Sequence[Entry]) -> tuple[LiveEntry, ...]:
    """The entries on `path` that no compaction has replaced, in file order, without pinned ones.

    They begin at the first entry that the newest compaction *kept*, which lies before the
    compaction entry itself; in a session that ``/compact`` started it lies after it.
    """
    compaction = newest_compaction(path)
    start = 0
    if compaction is not None:
        ids = [entry.id for entry in path]
        at = ids.index(compaction.id)
        before = ids[:at]
        first = compaction.first_kept_entry_id
        start = before.index(first) if first in before else at + 1
    changed = in_force(path)
    pinned = {entry.id for entry in pins_on(changed).values()} | read_marks(changed).staying
    return tuple(
        entry
        for entry in path[start:]
        if isinstance(entry, MessageEntry | CustomMessageEntry | BranchSummaryEntry)
        and entry.id not in pinned
    )


def _messages_by_entry(path: Sequence[Entry]) -> Mapping[str, list[ContextMessage]]:
    seen: defaultdict[str, list[ContextMessage]] = defaultdict(list)
    for item in build_context(path).messages:
        seen[item.entry_id].append(item)
    return seen


def _role(entry: LiveEntry, seen: Mapping[str, list[ContextMessage]]) -> _Role:
    if not seen[entry.id]:
        return "unseen"
    if not isinstance(entry, MessageEntry):
        return "other"
    match entry.message:
        case UserMessage():
            return "user"
        case AssistantMessage():
            return "assistant"
        case _:
            return "other"


def _legal_cuts(live: Sequence[LiveEntry], roles: Sequence[_Role]) -> tuple[list[int], int]:
    """Indexes of user messages and replies at which a cut separates no call from its result.

    A result belongs to the newest earlier call with its id that has no result yet: some providers
    reuse ids in later turns.

    Returns:
        The cuts in order, and the last possible cut if nothing has to stay: the end, or before the
        newest reply if it still waits for results.
    """
    waiting: defaultdict[str, list[int]] = defaultdict(list)
    parting: set[int] = set()
    for index, entry in enumerate(live):
        message = entry.message if isinstance(entry, MessageEntry) else None
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                waiting[call.id].append(index)
        elif isinstance(message, ToolResultMessage) and (calls := waiting[message.tool_call_id]):
            parting.update(range(calls.pop() + 1, index + 1))
    end = _newest_open_reply(roles, waiting)
    cuts = [
        index
        for index in range(1, min(end + 1, len(live)))
        if roles[index] in ("user", "assistant") and index not in parting
    ]
    return cuts, end


def _newest_open_reply(roles: Sequence[_Role], waiting: Mapping[str, list[int]]) -> int:
    """The index of the newest reply if a call of it still waits for its result; else the end."""
    newest = max((i for i, role in enumerate(roles) if role in ("user", "assistant")), default=-1)
    return newest if any(newest in replies for replies in waiting.values()) else len(roles)


def _staying(
    path: Sequence[Entry], pinned: Sequence[LiveEntry], kept: Sequence[LiveEntry]
) -> tuple[Entry, ...]:
    """`pinned` and `kept` with the context edits of kept messages, in file order.

    Pinned texts that were removed do not stay, as the entry that removed them is not copied. Marks
    that outlast this compaction are copied.
    """
    ids = {entry.id for entry in (*pinned, *kept)} - removed_pins(path)
    marks = read_marks(path)
    lasting = {marks.sources[key] for key in ids & marks.by_id.keys() if marks.by_id[key] != "keep"}
    return tuple(
        entry
        for entry in path
        if entry.id in ids | lasting
        or (isinstance(entry, ContextEditEntry) and entry.target_id in ids)
    )
