"""Shortening old replies: the arguments of their calls, in their form, and the text beside."""

from collections.abc import Collection
from dataclasses import dataclass

from pydantic import JsonValue

from agent_tui.compaction.tiers.cut import cut_middle, left_out_mark
from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from agent_tui.tokens import TokenCounter

REMARK_TOKENS = 24
"""What the line costs that says how much was left out."""

_LONGEST_LIST = 40
_LIST_END = 10


@dataclass(frozen=True, slots=True)
class TextLimits:
    """Texts over `max_tokens` keep `end_tokens` at each end."""

    max_tokens: int
    end_tokens: int


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """How much of a reply that made calls stays: of each text in their arguments, and of a note.

    What the arguments wrote is in the file, from which it can be read again. A note is what the
    model says to itself on the way to a call; a reply without calls is an answer, and stays.
    """

    argument: TextLimits
    note: TextLimits


def without_thinking(message: AssistantMessage) -> tuple[TextContent | ToolCall, ...]:
    """The text and the calls of a reply, in their order."""
    return tuple(part for part in message.content if not isinstance(part, ThinkingContent))


def shorter_reply(
    message: AssistantMessage, limits: ReplyLimits, entry_id: str, counter: TokenCounter
) -> tuple[TextContent | ToolCall, ...]:
    """A reply that made calls, without its thinking, its long notes cut and arguments left out.

    The arguments stay what the tools' schemas ask for: texts stay texts, objects keep their
    keys; of a very long list the first and the last items stay. A text in them is never cut
    inside, as models take such a text over into files: all of it becomes one line.
    """

    def cut_text(text: str, to: TextLimits) -> str:
        if len(text) <= to.max_tokens or (tokens := counter.count_text(text)) <= to.max_tokens:
            return text
        ends = to.end_tokens
        return cut_middle(text, tokens=tokens, end_tokens=ends, entry_id=entry_id, counter=counter)

    def cut_part(part: TextContent | ToolCall) -> TextContent | ToolCall:
        if isinstance(part, TextContent):
            text = cut_text(part.text, limits.note)
            return part if text is part.text else part.model_copy(update={"text": text})
        return left_out_whole(part, limits.argument.max_tokens, entry_id, counter)

    return tuple(cut_part(part) for part in without_thinking(message))


def left_out_whole(
    call: ToolCall,
    max_tokens: int,
    entry_id: str,
    counter: TokenCounter,
    *,
    names: Collection[str] = (),
) -> ToolCall:
    """`call` with every text in its arguments that is over `max_tokens` given as one line.

    With `names` only the texts of those arguments are, at whatever depth.
    """

    def shortened(value: JsonValue, name: str = "") -> JsonValue:
        match value:
            case str() if len(value) > max_tokens and (not names or name in names):
                tokens = counter.count_text(value)
                return left_out_mark(tokens, entry_id) if tokens > max_tokens else value
            case list():
                return [shortened(item) for item in value]
            case dict():
                return {key: shortened(item, key) for key, item in value.items()}
            case _:
                return value

    arguments: JsonObject = {
        key: shortened(value, key) for key, value in _ends_of_lists(call.arguments).items()
    }
    return call if arguments == call.arguments else call.model_copy(update={"arguments": arguments})


def _ends_of_lists(arguments: JsonObject) -> JsonObject:
    """`arguments` with the first and the last items of every very long list in them."""

    def ends(value: JsonValue) -> JsonValue:
        match value:
            case list() if len(value) > _LONGEST_LIST:
                return [ends(item) for item in (*value[:_LIST_END], *value[-_LIST_END:])]
            case list():
                return [ends(item) for item in value]
            case dict():
                return {key: ends(item) for key, item in value.items()}
            case _:
                return value

    return {key: ends(value) for key, value in arguments.items()}
