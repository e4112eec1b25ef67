"""Planning over entries in tests, and looking at what comes of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from agent_tui.compaction.outcome import Outcome
from agent_tui.compaction.strategies.message_plan import ConversationUnits, Lines
from agent_tui.compaction.strategies.tiered import shorten_in_place, worthiest
from agent_tui.compaction.tiers.units import read_units
from agent_tui.config import CompactionSettings
from agent_tui.messages import Message
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import Carryover, Entry
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import request_for

Tier: TypeAlias = Literal[0, 1, 2]

WINDOW = 100_000
SMALL = CompactionSettings(keep_recent_tokens=300, protected_messages=3, max_output_tokens=600)
"""Settings under which short sessions already have something to give."""


def planned(
    path: Sequence[Entry],
    counter: TokenCounter,
    *,
    target: int = 0,
    up_to: Tier = 2,
    settings: CompactionSettings = SMALL,
    overhead: int = 0,
    previous: Carryover | None = None,
) -> Outcome:
    """The edits down to `target`, 0 for all there are; what `shorten_in_place` does if it may."""
    request = request_for(
        path, settings=settings, window=WINDOW, target_tokens=max(target, 1), previous=previous
    )
    request = replace(request, sizes=replace(request.sizes, overhead=overhead))
    if up_to == 2:
        return shorten_in_place(request, counter)
    conversation = ConversationUnits(request, counter, "tiered")
    before = conversation.tokens_before
    if before <= target:
        return Outcome((), before, before, {})
    plan = conversation.plan()
    if up_to == 1:
        plan = plan.towards_target(worthiest(plan, Lines()))
    return Outcome(plan.edits, before, before - sum(plan.freed.values()), {}, freed=plan.freed)


def messages(path: Sequence[Entry]) -> list[Message]:
    return [item.message for item in build_context(path).messages]


def protected_ids(
    path: Sequence[Entry], counter: TokenCounter, settings: CompactionSettings = SMALL
) -> set[str]:
    units = read_units(path, carryover=None, counter=counter, settings=settings, window=WINDOW)
    return {unit.entry_id for unit in units.items if unit.is_protected}


def text_of(path: Sequence[Entry], entry_id: str) -> str:
    """What the model reads of one entry; its calls are left out."""
    return "\n".join(
        item.message.text for item in build_context(path).messages if item.entry_id == entry_id
    )
