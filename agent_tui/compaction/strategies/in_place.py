"""Shortening messages where they are, without a model and without a summary."""

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
"""To free more of the context, messages that the work still needs would become single lines: real
sessions went on better from a summary that has the files as they are."""


def shorten_in_place(request: CompactionRequest, counter: TokenCounter) -> StrategyPlan:
    """The edits that bring `request` down to its target, or as near as they can.

    What is seen elsewhere goes whole, as the prompt cache is lost anyway. Then messages keep their
    ends, and then a line, one by one until the target is reached. Where protected messages alone
    are larger than the target, their outputs keep their ends at last.
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
    """Offers of `fate` to all open messages, first where it frees most for its age.

    What is large and long ago is needed least for the room it takes, and many small outputs tell
    more than one large one.
    """
    units = plan.conversation.units

    def worth(position: int) -> int:
        saved = plan.size(position) - plan.conversation.made(position, fate).tokens
        return saved * (len(units) - position)

    positions = [unit.position for unit in units if plan.is_open(unit.position)]
    return [(at, fate) for at in sorted(positions, key=worth, reverse=True)]


def shortening_does(shorter: StrategyPlan, target_tokens: int) -> bool:
    """Whether `shorter` comes down to the target, and frees little enough to be done alone."""
    wanted = shorter.tokens_before - target_tokens
    is_small = wanted <= _SMALL_SHARE * shorter.tokens_before
    return is_small and shorter.tokens_after <= target_tokens
