"""Planning over entries in tests, and looking at what comes of it."""

from collections.abc import Sequence

from agent_tui.compaction.tiers.model import Tier, TierPlan
from agent_tui.compaction.tiers.pipeline import plan_tiers
from agent_tui.compaction.tiers.units import read_units
from agent_tui.config import CompactionSettings
from agent_tui.messages import Message
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import Entry
from agent_tui.tokens import TokenCounter

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
) -> TierPlan:
    return plan_tiers(
        path,
        carryover=None,
        counter=counter,
        settings=settings,
        window=WINDOW,
        overhead_tokens=overhead,
        target_tokens=target,
        up_to=up_to,
    )


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
