"""What people and models said long ago: which messages may get shorter, and their short forms."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent_tui.compaction.ledger.pinned import pinned_sentences
from agent_tui.compaction.strategies.hybrid.condenser import LongMessage
from agent_tui.compaction.tiers.cut import cut_middle
from agent_tui.compaction.tiers.model import Content, Unit
from agent_tui.compaction.tiers.replies import ReplyLimits, TextLimits, shorter_reply
from agent_tui.messages import AssistantMessage, TextContent, ToolCall, UserMessage
from agent_tui.omissions import recall_mark
from agent_tui.tokens import MESSAGE_OVERHEAD_TOKENS, TokenCounter

KEPT_MESSAGES = 5
"""The newest messages of person and model that stay byte for byte."""

MOST_USER_TOKENS = 50
MOST_ASSISTANT_TOKENS = 200
"""Of a message with everything around it, calls and rules that are kept word for word apart."""

_REMARK_TOKENS = 30
"""What `cut_middle` puts between the pieces, the id apart."""

_UNLIMITED = TextLimits(max_tokens=1_000_000_000, end_tokens=0)
CALLS_ALONE = ReplyLimits(argument=TextLimits(max_tokens=60, end_tokens=12), note=_UNLIMITED)
"""Arguments of old calls as tier 2 leaves them; the note beside them is said in fewer words."""


def with_protection(units: Sequence[Unit], kept_ids: Iterable[str]) -> tuple[Unit, ...]:
    """`units` with the marks of this strategy.

    Protected are the last `KEPT_MESSAGES` of person and model, the person's last message, and
    the results that the model may not have looked at yet.

    Args:
        units: The conversation, oldest first.
        kept_ids: Entries that are no messages of person or model and stay as they are.
    """
    kept = frozenset(kept_ids)
    spoken = [unit.position for unit in units if is_spoken(unit) and unit.entry_id not in kept]
    own = [at for at in spoken if isinstance(units[at].message, UserMessage)]
    protected = {*spoken[-KEPT_MESSAGES:], *own[-1:], *unread_positions(units)}
    return tuple(
        replace(unit, is_protected=unit.position in protected or unit.entry_id in kept)
        for unit in units
    )


def unread_positions(units: Sequence[Unit]) -> range:
    """The positions of the outputs at the end that no reply has come after."""
    at = len(units)
    while at > 0 and units[at - 1].output is not None:
        at -= 1
    return range(at, len(units))


def is_spoken(unit: Unit) -> bool:
    """Whether a person or a model said it, rather than a tool or a feature."""
    if unit.output is not None or unit.is_display_only:
        return False
    return isinstance(unit.message, UserMessage | AssistantMessage)


class ShortForms:
    """Makes and measures the short forms of old messages."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def long_message(self, unit: Unit) -> LongMessage | None:
        """What a model is asked to shorten; None where the message is short enough."""
        if unit.is_protected or not is_spoken(unit):
            return None
        text = unit.message.text
        most = _most_tokens(unit)
        if len(text) <= most or self._counter.count_text(text) <= most - MESSAGE_OVERHEAD_TOKENS:
            return None
        speaker = "user" if isinstance(unit.message, UserMessage) else "assistant"
        room = most - MESSAGE_OVERHEAD_TOKENS - self._counter.count_text(_ending(unit))
        return LongMessage(speaker, text, max(room, most // 4))

    def condensed(self, unit: Unit, text: str) -> str:
        """`text`, a model's, with where the original is; empty where that is too long."""
        whole = text.strip() + _ending(unit)
        return whole if self._fits(unit, whole) else ""

    def truncated(self, unit: Unit) -> str:
        """The beginning of the message, of a reply its end too, with where the original is."""
        text = unit.message.text.strip()
        most = _most_tokens(unit) - MESSAGE_OVERHEAD_TOKENS
        ending = _ending(unit)
        tokens = self._counter.count_text(text)
        if isinstance(unit.message, AssistantMessage):
            mark_tokens = self._counter.count_text(ending)
            ends = (most - mark_tokens - _REMARK_TOKENS) // 2
            while ends > 0:
                cut = cut_middle(
                    text,
                    tokens=tokens,
                    end_tokens=ends,
                    entry_id=unit.entry_id,
                    counter=self._counter,
                )
                if self._fits(unit, cut):
                    return cut
                ends = ends * 3 // 4
        chars = len(text) * most // max(tokens, 1)
        while chars > 0:
            cut = f"{text[:chars].rstrip()}…{ending}"
            if self._fits(unit, cut):
                return cut
            chars = chars * 4 // 5
        return f"…{ending}"

    def content(self, unit: Unit, short: str) -> Content:
        """The edit that puts `short` in place of what was said.

        A reply keeps its calls; of a person's message every sentence that states a rule stays
        word for word after it.
        """
        message = unit.message
        if isinstance(message, AssistantMessage):
            parts = shorter_reply(message, CALLS_ALONE, unit.entry_id, self._counter)
            calls = tuple(part for part in parts if isinstance(part, ToolCall))
            return (TextContent(text=short), *calls)
        lost = [rule for rule in pinned_sentences(message.text) if rule not in short]
        return "\n".join([short, *lost])

    def _fits(self, unit: Unit, text: str) -> bool:
        return self._counter.count_text(text) <= _most_tokens(unit) - MESSAGE_OVERHEAD_TOKENS


def _most_tokens(unit: Unit) -> int:
    is_own = isinstance(unit.message, UserMessage)
    return MOST_USER_TOKENS if is_own else MOST_ASSISTANT_TOKENS


def _ending(unit: Unit) -> str:
    return f" {recall_mark(unit.entry_id)}"
