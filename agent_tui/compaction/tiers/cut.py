"""Cut texts and replies, measured in tokens."""

from collections.abc import Collection

from pydantic import JsonValue

from agent_tui.messages import AssistantMessage, TextContent, ThinkingContent, ToolCall
from agent_tui.omissions import omission_mark, recall_mark
from agent_tui.tokens import TokenCounter

_MOST_CHARS_A_TOKEN = 6
"""Prose and code have 3 to 5; runs of blanks have hundreds and would hide the text beside them."""

SLACK = 1.1
"""A piece may exceed the requested size by this factor."""
_LINE_SHARE = 4
"""A cut moves to the end of a line if that costs at most this fraction of a piece."""

_NOTE_ENDS = 3
"""A note that is cut keeps two ends, each of this fraction of its limit."""

_LONGEST_LIST = 40
_LIST_END = 10


def left_out_mark(tokens: int, entry_id: str) -> str:
    """The mark that replaces `tokens` tokens; `entry_id` has the original."""
    return f"{omission_mark(f'{tokens:,} tokens')} {recall_mark(entry_id)}"


def cut_middle(
    text: str, *, tokens: int, end_tokens: int, entry_id: str, counter: TokenCounter
) -> str:
    """The beginning and end of `text`, about `end_tokens` each, and a line on what was removed.

    A single huge line is cut like any other text.

    Args:
        text: At least twice `end_tokens` long, or the result is no smaller.
        tokens: Size of `text`.
        end_tokens: Tokens kept at each end.
        entry_id: The entry with the original.
        counter: Counts the tokens of pieces.
    """
    chars = min(len(text) * end_tokens // max(tokens, 1), _MOST_CHARS_A_TOKEN * end_tokens)
    chars = min(max(chars, 1), len(text) // 2)
    head, tail = text[:chars], text[len(text) - chars :]
    head = head[: _fitting_chars(head, end_tokens, counter)]
    tail = tail[len(tail) - _fitting_chars(tail, end_tokens, counter) :]
    if len(head) - (line_end := head.rfind("\n") + 1) < len(head) // _LINE_SHARE:
        head = head[:line_end]
    if (line_start := tail.find("\n") + 1) < len(tail) // _LINE_SHARE:
        tail = tail[line_start:]
    left_out = max(tokens - counter.count_text(head) - counter.count_text(tail), 0)
    start = "" if head.endswith("\n") else "\n"
    return f"{head}{start}{left_out_mark(left_out, entry_id)}\n{tail}"


def _fitting_chars(piece: str, max_tokens: int, counter: TokenCounter) -> int:
    """The number of characters of `piece` to keep if it is denser than the whole text."""
    tokens = counter.count_text(piece)
    if tokens <= SLACK * max_tokens:
        return len(piece)
    return max(len(piece) * max_tokens // tokens, 1)


def without_thinking(message: AssistantMessage) -> tuple[TextContent | ToolCall, ...]:
    """The text and the calls of a reply, in their order."""
    return tuple(part for part in message.content if not isinstance(part, ThinkingContent))


def shorter_reply(
    message: AssistantMessage, argument: int, note: int, entry_id: str, counter: TokenCounter
) -> tuple[TextContent | ToolCall, ...]:
    """A reply with calls, without thinking, with long notes cut and long arguments left out.

    Text written by arguments is in the file and can be read again. A note is the text beside a
    call.

    Args:
        message: The reply.
        argument: Tokens; a longer text in the arguments becomes a line.
        note: Tokens; a longer text beside the calls keeps its two ends.
        entry_id: The entry with the original.
        counter: Counts the tokens of texts.
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
    """`call` with every text over `max_tokens` in its arguments replaced by one line.

    Arguments still fit the tools' schemas: texts stay texts, objects keep their keys; a very long
    list keeps its first and last items. Texts are never cut inside, as models copy such texts into
    files. With `names`, only texts in those arguments are replaced, at any depth.
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
