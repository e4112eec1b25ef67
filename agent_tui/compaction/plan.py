"""What a compaction would take and what it would leave: pure, decided before any model call."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

from agent_tui.config import CompactionSettings
from agent_tui.errors import NothingToCompactError
from agent_tui.messages import AssistantMessage, ToolResultMessage, UserMessage
from agent_tui.sessions.context import ContextMessage, build_context
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    Carryover,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from agent_tui.sessions.replay.changes import in_force
from agent_tui.tokens import TokenCounter

LiveEntry: TypeAlias = MessageEntry | CustomMessageEntry | BranchSummaryEntry
"""An entry that can put something into the context."""

_Role: TypeAlias = Literal["user", "assistant", "other", "unseen"]

_WORTHWHILE = 0.5
"""A cut that takes less of the conversation than this is not worth a summary."""

_TAKEN_TOKENS = 1_024
"""What the shortest prompt, its tools and a summary take of any window."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """One cut through a conversation.

    Args:
        summarised: The messages that the summary will stand for, as the model saw them.
        kept: The messages that stay, as the model saw them.
        kept_entries: Their entries in file order, with the context edits that concern them.
        first_kept_entry_id: The first of them; empty when nothing is kept.
        previous_summary: The summary that the new one continues; empty the first time.
        splits_turn: The cut is inside a turn: the beginning of what stays is summarised.
        request: The person's newest message, when it is not among `kept`; else empty.
        summarised_tokens: Estimate of `summarised`.
        kept_tokens: Estimate of `kept`.
    """

    summarised: tuple[ContextMessage, ...]
    kept: tuple[ContextMessage, ...]
    kept_entries: tuple[Entry, ...]
    first_kept_entry_id: str
    previous_summary: str
    splits_turn: bool
    request: str
    summarised_tokens: int
    kept_tokens: int


@dataclass(frozen=True, slots=True)
class PreparedCut:
    """A cut that a summary was made for ahead of time.

    Args:
        first_kept_entry_id: Where it is.
        max_kept_tokens: It is chosen again while what stays is no larger.
    """

    first_kept_entry_id: str
    max_kept_tokens: int


def plan_compaction(
    path: Sequence[Entry],
    *,
    previous: Carryover | None,
    counter: TokenCounter,
    settings: CompactionSettings,
    window: int,
    prepared: PreparedCut | None = None,
) -> CompactionPlan:
    """Choose the cut: what comes before it becomes the summary, the rest stays.

    The cut is at a message of the person's or a reply, never between a call and its result.
    What stays is the longest end of the conversation that fits ``keep_recent`` tokens. When
    that would be everything, it is the last ``protected_messages`` messages, then the last
    message of the person's with what followed, then the last reply alone: whoever asks for a
    compaction gets one. A last turn that is larger than ``keep_recent`` is cut inside. A newest
    reply that waits for results stays in any case, or they would come to nothing.

    Args:
        path: Entries from the root to the leaf.
        previous: What the header carries over from the parent session.
        counter: Estimates.
        settings: ``keep_recent_tokens`` and ``protected_messages``.
        window: Context window in tokens.
        prepared: The cut to choose if it still will do.

    Raises:
        NothingToCompactError: less than one exchange since the last compaction, and not so
            large that the window could not hold another.
    """
    path = in_force(path)
    live = live_entries(path)
    seen = _seen_by_model(path)
    tokens = [sum(counter.count_message(m.message) for m in seen[entry.id]) for entry in live]
    roles: list[_Role] = [_role(entry, seen) for entry in live]
    summary = previous_summary(path, previous)
    is_exchange = "assistant" in roles and ("user" in roles or summary)
    if not is_exchange and sum(tokens) <= window // 2:
        raise NothingToCompactError(
            "Nothing to compact: less than one exchange since the start or the last compaction."
        )
    cuts, end = _legal_cuts(live, roles)
    cut = _prepared_cut(live, cuts, tokens, prepared)
    if cut is None:
        cut = _choose_cut(cuts, end, roles, tokens, settings, window)
    if cut == 0:
        raise NothingToCompactError("Nothing to compact: the newest reply is all there is.")
    return CompactionPlan(
        summarised=tuple(m for entry in live[:cut] for m in seen[entry.id]),
        kept=tuple(m for entry in live[cut:] for m in seen[entry.id]),
        kept_entries=_with_edits(path, live[cut:]),
        first_kept_entry_id=live[cut].id if cut < len(live) else "",
        previous_summary=summary,
        splits_turn=cut == len(live) or roles[cut] != "user",
        request="" if "user" in roles[cut:] else _newest_request(path, previous),
        summarised_tokens=sum(tokens[:cut]),
        kept_tokens=sum(tokens[cut:]),
    )


def newest_compaction(path: Sequence[Entry]) -> CompactionEntry | None:
    """The compaction in force, if there is one on `path`."""
    return next((e for e in reversed(in_force(path)) if isinstance(e, CompactionEntry)), None)


def previous_summary(path: Sequence[Entry], previous: Carryover | None) -> str:
    """The summary in force: of the newest compaction, else of the parent session."""
    compaction = newest_compaction(path)
    if compaction is not None:
        return compaction.summary
    return previous.summary if previous is not None else ""


def live_entries(path: Sequence[Entry]) -> tuple[LiveEntry, ...]:
    """The entries on `path` that no compaction stands for yet, in file order.

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
    return tuple(
        entry
        for entry in path[start:]
        if isinstance(entry, MessageEntry | CustomMessageEntry | BranchSummaryEntry)
    )


def _seen_by_model(path: Sequence[Entry]) -> Mapping[str, list[ContextMessage]]:
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
    """Places before a message of the person's or a reply that part no call from its result.

    A result belongs to the newest call before it that still waits for its id: some providers
    use ids again in later turns.

    Returns:
        The places in order, and the last place that would do if nothing need stay: the end, or
        before the newest reply if its results are still to come.
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
    """Where the newest reply is if calls of it still wait for results; else the end."""
    newest = max((i for i, role in enumerate(roles) if role in ("user", "assistant")), default=-1)
    return newest if any(newest in replies for replies in waiting.values()) else len(roles)


def _prepared_cut(
    live: Sequence[LiveEntry],
    cuts: Sequence[int],
    tokens: Sequence[int],
    prepared: PreparedCut | None,
) -> int | None:
    if prepared is None:
        return None
    for cut in cuts:
        if live[cut].id == prepared.first_kept_entry_id:
            return cut if sum(tokens[cut:]) <= prepared.max_kept_tokens else None
    return None


def _choose_cut(
    cuts: Sequence[int],
    end: int,
    roles: Sequence[_Role],
    tokens: Sequence[int],
    settings: CompactionSettings,
    window: int,
) -> int:
    total = sum(tokens)
    before = list(accumulate(tokens, initial=0))
    kept = {cut: total - before[cut] for cut in cuts}
    newest_user = max((i for i, role in enumerate(roles) if role == "user"), default=-1)
    keep_tokens = min(settings.keep_recent(window), max(window - _TAKEN_TOKENS, 0) // 5)
    recent = [cut for cut in cuts if kept[cut] <= keep_tokens]
    protected = [
        cut
        for cut in recent[-settings.protected_messages :]
        if sum(role != "unseen" for role in roles[cut:]) <= settings.protected_messages
    ]
    last_turn = [cut for cut in recent if cut == newest_user and "assistant" in roles[:cut]]
    for allowed in (recent, protected, last_turn):
        if allowed:
            cut = _at_turn_start(allowed, roles, kept)
            if total - kept[cut] >= _WORTHWHILE * total:
                return cut
    if cuts and kept[cuts[-1]] <= (window - _TAKEN_TOKENS // 2) // 2:
        return cuts[-1]
    return end


def _at_turn_start(cuts: Sequence[int], roles: Sequence[_Role], kept: Mapping[int, int]) -> int:
    """The first of `cuts`, or the next start of a turn if at least half as much stays."""
    for cut in cuts:
        if roles[cut] == "user" and 2 * kept[cut] >= kept[cuts[0]]:
            return cut
    return cuts[0]


def _with_edits(path: Sequence[Entry], kept: Sequence[LiveEntry]) -> tuple[Entry, ...]:
    """`kept` with the context edits of kept messages, in file order."""
    ids = {entry.id for entry in kept}
    return tuple(
        entry
        for entry in path
        if entry.id in ids or (isinstance(entry, ContextEditEntry) and entry.target_id in ids)
    )


def _newest_request(path: Sequence[Entry], previous: Carryover | None) -> str:
    """What the person asked for last: on `path`, else in what the parent session handed on."""
    for entry in reversed(path):
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
            return entry.message.text
    ledger = previous.ledger if previous is not None else None
    return ledger.user_messages[0] if ledger is not None and ledger.user_messages else ""
