"""The forms in which a message may stay: without repetition, its two ends, or one line."""

from agent_tui.compaction.ledger.pinned import pinned_sentences
from agent_tui.compaction.tiers.cut import cut_middle, shorter_reply, without_thinking
from agent_tui.compaction.tiers.describe import describe
from agent_tui.compaction.tiers.model import Content, Unit
from agent_tui.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ToolResultMessage,
    UserMessage,
    images_in,
)
from agent_tui.tokens import TokenCounter

_OUTPUT_END_TOKENS = 250
_PASTE_FACTOR = 4
_PASTE_END_TOKENS = 1_000
_ENDS_ARGUMENT_TOKENS, _ENDS_NOTE_TOKENS = 150, 500
_LINE_ARGUMENT_TOKENS, _LINE_NOTE_TOKENS = 60, 120


def without_repetition(unit: Unit, pointer: str | None) -> Content:
    """A reply without thinking, or `pointer` to where an output is repeated; None if neither.

    No provider needs the thinking of a finished exchange, signed or not. An edit need not repeat
    calls at the end.
    """
    if not isinstance(unit.message, AssistantMessage):
        return pointer
    parts = without_thinking(unit.message)
    if len(parts) == len(unit.message.content):
        return None
    texts = tuple(part for part in parts if isinstance(part, TextContent))
    return texts if parts[: len(texts)] == texts else parts


def two_ends(unit: Unit, max_output_tokens: int, counter: TokenCounter) -> Content:
    """The beginning and end of a long message; None if it is not long.

    Outputs over `max_output_tokens` keep 250 tokens at each end, a long note beside a call 150;
    a long text in the arguments of a call becomes a line. User messages stay whole, but one over
    four times the limit is mostly a pasted log: it keeps 1,000 tokens at each end, where people put
    their own words, and every sentence that states a rule.
    """
    message = unit.message
    if isinstance(message, AssistantMessage):
        return _reply(unit, message, _ENDS_ARGUMENT_TOKENS, _ENDS_NOTE_TOKENS, counter)
    if unit.output is not None:
        text, most, ends = unit.output.text, max_output_tokens, _OUTPUT_END_TOKENS
    else:
        text, most, ends = message.text, _PASTE_FACTOR * max_output_tokens, _PASTE_END_TOKENS
    if unit.written_tokens <= most or (tokens := counter.count_text(text)) <= most:
        return None
    cut = cut_middle(text, tokens=tokens, end_tokens=ends, entry_id=unit.entry_id, counter=counter)
    rules = pinned_sentences(text) if unit.output is None else ()
    if lost := [rule for rule in rules if rule not in cut]:
        cut = "\n\n".join([cut, "Also said in the part left out:", *lost])
    return with_images(cut, message)


def one_line_of(unit: Unit, *, is_outdated: bool, counter: TokenCounter) -> Content:
    """One line about an output, a reply with shortened calls; None for a user's message.

    Args:
        unit: The message.
        is_outdated: Whether its file changed since, which the line then says.
        counter: Counts its tokens.
    """
    if unit.output is not None:
        return describe(unit.output, unit.entry_id, "edited since" if is_outdated else "")
    if isinstance(unit.message, AssistantMessage):
        return _reply(unit, unit.message, _LINE_ARGUMENT_TOKENS, _LINE_NOTE_TOKENS, counter)
    return None


def with_images(text: str, message: Message) -> str | tuple[TextContent | ImageContent, ...]:
    """`text` to replace the text of `message`, with the images of `message`."""
    has_images = isinstance(message, UserMessage | ToolResultMessage)
    images = images_in(message.content) if has_images else ()
    return (TextContent(text=text), *images) if images else text


def _reply(
    unit: Unit, message: AssistantMessage, argument: int, note: int, counter: TokenCounter
) -> Content:
    """A reply with shortened calls; None for a reply without calls, which stays."""
    if not message.tool_calls or unit.written_tokens <= argument:
        return None
    shorter = shorter_reply(message, argument, note, unit.entry_id, counter)
    return shorter if shorter != message.content else None
