"""The tiers in their order: how much of a context to free, and by which edits."""

from collections.abc import Sequence

from agent_tui.compaction.plan import previous_summary
from agent_tui.compaction.sections.files import shown_paths
from agent_tui.compaction.tiers.batch import Batch, batch_id
from agent_tui.compaction.tiers.model import Tier, TierPlan, Unit
from agent_tui.compaction.tiers.outputs import action_of
from agent_tui.compaction.tiers.tier0 import propose_free
from agent_tui.compaction.tiers.tier1 import propose_shorter, propose_shorter_output
from agent_tui.compaction.tiers.tier2 import propose_lines
from agent_tui.compaction.tiers.units import read_units
from agent_tui.config import CompactionSettings
from agent_tui.messages import AssistantMessage
from agent_tui.sessions.entries import Carryover, Entry
from agent_tui.tokens import TokenCounter


def plan_tiers(
    path: Sequence[Entry],
    *,
    carryover: Carryover | None,
    counter: TokenCounter,
    settings: CompactionSettings,
    window: int,
    overhead_tokens: int,
    target_tokens: int,
    up_to: Tier = 2,
) -> TierPlan:
    """Choose the edits that bring the next request down to `target_tokens`, if they can.

    Tier 0 is applied whole, as it costs nothing and the prompt cache is lost anyway; the others
    edit by edit until the target is reached, the worthiest first (see `Batch.take`). Changes of a
    file that the summary in force shows stay, as the file there is older. Every edit is made from
    the message as it was written, and a message only ever moves to a higher tier, so that a second
    run changes nothing.

    Args:
        path: Entries from the root to the leaf; edits among them count as they are.
        carryover: ``compaction`` of the session's header.
        counter: Estimates; texts it has counted before cost next to nothing.
        settings: What is protected, ``max_output_tokens`` and ``summary_role``.
        window: Context window in tokens.
        overhead_tokens: System prompt and tool schemas, as `counter` estimates them.
        target_tokens: Size of the next request to reach, as `counter` estimates it.
        up_to: The highest tier to use.
    """
    units = read_units(path, carryover=carryover, counter=counter, settings=settings, window=window)
    items = units.items
    protected = [unit for unit in items if unit.is_protected]
    is_tail_too_large = sum(unit.tokens for unit in protected) + overhead_tokens > target_tokens
    before = units.tokens + overhead_tokens
    limit = settings.max_output_tokens
    outputs = sum(unit.output is not None for unit in items)
    batch = Batch(counter, batch_id(path), len(items), before, target_tokens)
    batch.take_whole(propose_free(items))
    newer = _newer_than_shown(items, previous_summary(path, carryover))
    free = [unit for unit in items if unit.position not in newer]
    if up_to >= 1:
        batch.take(propose_shorter(free, max_output_tokens=limit, counter=counter))
    if up_to >= 2:
        batch.take(propose_lines(free, outputs, counter))
    if up_to >= 1 and is_tail_too_large:
        batch.take(p for unit in protected for p in propose_shorter_output(unit, limit, counter))
    edits, freed = batch.finished()
    return TierPlan(edits, before, before - sum(freed.values()), freed, is_tail_too_large)


def _newer_than_shown(units: Sequence[Unit], summary: str) -> frozenset[int]:
    """The replies that change a file of which `summary` shows how it was before."""
    shown = [f"/{path}" for path in shown_paths(summary)]
    return frozenset(
        unit.position
        for unit in units
        if shown and isinstance(unit.message, AssistantMessage)
        for action in map(action_of, unit.message.tool_calls)
        if action.kind in ("write", "edit") and f"/{action.path}".endswith(tuple(shown))
    )
