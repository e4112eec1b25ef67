"""Tier 2, metadata: old outputs become one line, what replies said on the way a few words."""

from collections.abc import Iterator, Sequence
from functools import partial

from agent_tui.compaction.tiers.describe import describe
from agent_tui.compaction.tiers.model import Content, Output, Proposal, Unit
from agent_tui.compaction.tiers.replies import ReplyLimits, TextLimits
from agent_tui.compaction.tiers.tier1 import propose_shorter_reply
from agent_tui.messages import AssistantMessage
from agent_tui.tokens import TokenCounter

_LINE_TOKENS = 60
_REPLY = ReplyLimits(
    argument=TextLimits(max_tokens=60, end_tokens=12),
    note=TextLimits(max_tokens=120, end_tokens=40),
)


def propose_lines(units: Sequence[Unit], counter: TokenCounter) -> Iterator[Proposal]:
    """Every edit of tier 2, protected messages and what the person wrote left out."""
    outputs = sum(unit.output is not None for unit in units)
    for unit in units:
        if unit.is_protected:
            continue
        if unit.output is not None:
            make = partial(_line, unit, unit.output, outputs)
            yield Proposal(unit, 2, _LINE_TOKENS, make)
        elif isinstance(unit.message, AssistantMessage):
            yield from propose_shorter_reply(unit, unit.message, 2, _REPLY, counter)


def _line(unit: Unit, output: Output, outputs: int) -> Content:
    return describe(output, outputs, unit.entry_id)
