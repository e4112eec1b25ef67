"""Shorten messages in place, without a model and without a summary."""

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.strategies.base import StrategyPlan
from agent_tui.compaction.strategies.message_plan import (
    Conversation,
    Fate,
    Line,
    Lines,
    MessagePlan,
)
from agent_tui.tokens import TokenCounter

_SMALL_SHARE = 0.25
"""Share of the context. Freeing more would reduce messages that the work needs to single lines.

Real sessions continued better from a summary with the current files.
"""


def shorten_in_place(request: CompactionRequest, counter: TokenCounter) -> StrategyPlan:
    """Make the edits that reduce `request` to its target, or as near as possible.

    Everything shown elsewhere is removed, as the prompt cache is lost anyway. Then messages are cut
    to their ends, then to one line, one by one until the target is reached. If protected messages
    alone exceed the target, their outputs are finally cut to their ends.
    """
    conversation = Conversation(request, counter, "tiered")
    before, target = conversation.tokens_before, conversation.target_tokens
    if before <= target:
        return StrategyPlan((), before, before, {})
    plan = conversation.plan()
    for fate in (Lines(), Line()):
        plan = plan.towards_target(worthiest(plan, fate))
    protected = [unit for unit in conversation.units if unit.is_protected]
    if sum(unit.tokens for unit in protected) + request.overhead_tokens > target:
        plan = plan.towards_target((u.position, Lines()) for u in protected if u.output)
    freed = plan.freed
    return StrategyPlan(plan.edits, before, before - sum(freed.values()), {}, freed=freed)


def worthiest(plan: MessagePlan, fate: Fate) -> list[tuple[int, Fate]]:
    """Offer `fate` to all open messages, ordered by tokens saved times age.

    Large old messages are needed least for their size, and many small outputs say more than one
    large one.
    """
    units = plan.conversation.units

    def worth(position: int) -> int:
        saved = plan.size(position) - plan.conversation.made(position, fate).tokens
        return saved * (len(units) - position)

    positions = [unit.position for unit in units if plan.is_open(unit.position)]
    return [(at, fate) for at in sorted(positions, key=worth, reverse=True)]


def shortening_does(shorter: StrategyPlan, target_tokens: int) -> bool:
    """Whether `shorter` reaches the target and frees little enough to be used alone."""
    wanted = shorter.tokens_before - target_tokens
    is_small = wanted <= _SMALL_SHARE * shorter.tokens_before
    return is_small and shorter.tokens_after <= target_tokens
