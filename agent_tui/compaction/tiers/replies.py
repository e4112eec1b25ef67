"""Shortening old replies: the arguments of their calls, in their form, and the text beside."""

from collections.abc import Collection

from pydantic import JsonValue

from agent_tui.compaction.tiers.cut import cut_middle, left_out_mark
from agent_tui.messages import AssistantMessage, TextContent, ThinkingContent, ToolCall
from agent_tui.tokens import TokenCounter

_NOTE_ENDS = 3
"""A note that is cut keeps two ends of this part of its limit."""

_LONGEST_LIST = 40
_LIST_END = 10


def without_thinking(message: AssistantMessage) -> tuple[TextContent | ToolCall, ...]:
    """The text and the calls of a reply, in their order."""
    return tuple(part for part in message.content if not isinstance(part, ThinkingContent))


def shorter_reply(
    message: AssistantMessage, argument: int, note: int, entry_id: str, counter: TokenCounter
) -> tuple[TextContent | ToolCall, ...]:
    """A reply that made calls, without its thinking, its long notes cut and arguments left out.

    What the arguments wrote is in the file, from which it can be read again. A note is what the
    model says to itself on the way to a call.

    Args:
        message: The reply.
        argument: Tokens; a longer text in the arguments becomes a line.
        note: Tokens; a longer text beside the calls keeps its two ends.
        entry_id: Where the original is.
        counter: Measures the texts.
    """

    def shortened(part: TextContent | ToolCall) -> TextContent | ToolCall:
        if isinstance(part, ToolCall):
            return left_out_whole(part, argument, entry_id, counter)
        tokens = counter.count_text(part.text)
        if tokens <= note:
            return part
        ends = note // _NOTE_ENDS
        text = cut_middle(
            part.text, tokens=tokens, end_tokens=ends, entry_id=entry_id, counter=counter
        )
        return part.model_copy(update={"text": text})

    return tuple(map(shortened, without_thinking(message)))


def left_out_whole(
    call: ToolCall,
    max_tokens: int,
    entry_id: str,
    counter: TokenCounter,
    *,
    names: Collection[str] = (),
) -> ToolCall:
    """`call` with every text in its arguments that is over `max_tokens` given as one line.

    The arguments stay what the tools' schemas ask for: texts stay texts, objects keep their
    keys; of a very long list the first and the last items stay. A text in them is never cut
    inside, as models take such a text over into files. With `names` only the texts of those
    arguments are, at whatever depth.
    """

    def shortened(value: JsonValue, name: str = "") -> JsonValue:
        match value:
            case str() if len(value) > max_tokens and (not names or name in names):
                tokens = counter.count_text(value)
                return left_out_mark(tokens, entry_id) if tokens > max_tokens else value
            case list():
                is_long = len(value) > _LONGEST_LIST
                items = [*value[:_LIST_END], *value[-_LIST_END:]] if is_long else value
                return [shortened(item) for item in items]
            case dict():
                return {key: shortened(item, key) for key, item in value.items()}
            case _:
                return value

    arguments = {key: shortened(value, key) for key, value in call.arguments.items()}
    return call if arguments == call.arguments else call.model_copy(update={"arguments": arguments})
