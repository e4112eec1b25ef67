"""Tier 1, shorten: long outputs, arguments of calls and pasted texts keep their two ends."""

from collections.abc import Iterator, Sequence
from functools import partial

from agent_tui.compaction.ledger.pinned import pinned_sentences
from agent_tui.compaction.tiers.cut import cut_middle
from agent_tui.compaction.tiers.model import Content, Proposal, Tier, Unit
from agent_tui.compaction.tiers.replies import (
    REMARK_TOKENS,
    ReplyLimits,
    TextLimits,
    shorter_reply,
)
from agent_tui.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ToolResultMessage,
    UserMessage,
    images_in,
)
from agent_tui.tokens import IMAGE_TOKENS, TokenCounter

_OUTPUT_END_TOKENS = 250
_REPLY = ReplyLimits(
    argument=TextLimits(max_tokens=150, end_tokens=0),
    note=TextLimits(max_tokens=500, end_tokens=150),
)

_PASTE_FACTOR = 4
_PASTE_END_TOKENS = 1_000


def propose_shorter(
    units: Sequence[Unit], *, max_output_tokens: int, counter: TokenCounter
) -> Iterator[Proposal]:
    """Every edit of tier 1, protected messages left out.

    Outputs over `max_output_tokens` keep 250 tokens at each end, a long note beside a call 150; a
    long text in the arguments of a call becomes a line. What the person wrote is theirs, but a
    message over four times the limit is mostly a pasted log that no window has room for twice: it
    keeps 1,000 tokens at each end, where people put their own words, and every sentence that
    states a rule.
    """
    for unit in units:
        if unit.is_protected:
            continue
        if unit.output is not None:
            yield from propose_shorter_output(unit, max_output_tokens, counter)
        elif isinstance(unit.message, AssistantMessage):
            yield from propose_shorter_reply(unit, unit.message, 1, _REPLY, counter)
        elif isinstance(unit.message, UserMessage):
            images = unit.message.images
            text_tokens = unit.written_tokens - IMAGE_TOKENS * len(images)
            if text_tokens > _PASTE_FACTOR * max_output_tokens:
                expected = unit.written_tokens - text_tokens + 2 * _PASTE_END_TOKENS + REMARK_TOKENS
                make = partial(_shorter_paste, unit, unit.message.text, images, counter)
                yield Proposal(unit, 1, expected, make)


def propose_shorter_output(
    unit: Unit, max_output_tokens: int, counter: TokenCounter
) -> Iterator[Proposal]:
    """The edit that shortens one output, if it is long. Its images stay."""
    if unit.output is None or unit.written_tokens <= max_output_tokens:
        return
    images = _images_of(unit.message)
    image_tokens = IMAGE_TOKENS * len(images)
    if unit.written_tokens - image_tokens > max_output_tokens:
        expected = image_tokens + 2 * _OUTPUT_END_TOKENS + REMARK_TOKENS
        make = partial(_shorter_output, unit, unit.output.text, images, counter)
        yield Proposal(unit, 1, expected, make)


def propose_shorter_reply(
    unit: Unit, message: AssistantMessage, tier: Tier, limits: ReplyLimits, counter: TokenCounter
) -> Iterator[Proposal]:
    """The edit that shortens a reply with calls and strips its thinking."""
    tokens = unit.written_tokens - unit.thinking_tokens
    if tokens > limits.argument.max_tokens and message.tool_calls:
        shorter = shorter_reply(message, limits, unit.entry_id, counter)
        if shorter != message.content:
            left = message.model_copy(update={"content": shorter})
            size = counter.count_message(left) + unit.id_tokens
            yield Proposal(unit, tier, size, lambda: shorter, is_exact=True)


def _shorter_output(
    unit: Unit, text: str, images: tuple[ImageContent, ...], counter: TokenCounter
) -> Content:
    cut = _cut(unit, text, _OUTPUT_END_TOKENS, counter)
    return (TextContent(text=cut), *images) if images else cut


def _shorter_paste(
    unit: Unit, text: str, images: tuple[ImageContent, ...], counter: TokenCounter
) -> Content:
    cut = _cut(unit, text, _PASTE_END_TOKENS, counter)
    if lost := [sentence for sentence in pinned_sentences(text) if sentence not in cut]:
        cut = "\n\n".join([cut, "Also said in the part left out:", *lost])
    return (TextContent(text=cut), *images) if images else cut


def _cut(unit: Unit, text: str, end_tokens: int, counter: TokenCounter) -> str:
    return cut_middle(
        text,
        tokens=counter.count_text(text),
        end_tokens=end_tokens,
        entry_id=unit.entry_id,
        counter=counter,
    )


def _images_of(message: Message) -> tuple[ImageContent, ...]:
    has_images = isinstance(message, UserMessage | ToolResultMessage)
    return images_in(message.content) if has_images else ()
