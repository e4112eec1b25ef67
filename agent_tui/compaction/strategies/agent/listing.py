"""What the compression agent is shown of a context: numbers and a few words, never contents."""

import json
from collections.abc import Iterable, Iterator

from agent_tui.compaction.shorten import one_line, shorten_middle
from agent_tui.compaction.strategies.agent.copy import ContextCopy
from agent_tui.compaction.strategies.agent.tools import Span
from agent_tui.compaction.tiers.model import Unit
from agent_tui.compaction.transcript.text import LIMITS, escape_tags, message_texts
from agent_tui.messages import AssistantMessage, ToolResultMessage, UserMessage
from agent_tui.tokens import TokenCounter

_LEAST_LISTED_TOKENS = 80
"""Smaller ones have nothing to give by themselves; a segment can still hold them."""

_LEAST_SEGMENT_TOKENS = 200
_SHOWN_CHARS = 70
_CHARS_PER_TOKEN = 3


def listing(
    copy: ContextCopy, counter: TokenCounter, room_tokens: int, segment_tokens: int, skip: int = 0
) -> str:
    """The messages that can be compressed, largest first, and segments, in `room_tokens`.

    Of segments the oldest come first: what is long ago is needed least.

    Args:
        copy: The context.
        counter: Measures the lines.
        room_tokens: Bound; segments get at least half of it where there are so many.
        segment_tokens: How large a segment may be.
        skip: How many of the largest messages to leave out.
    """
    sized = (
        (copy.tokens(unit.position), unit)
        for unit in copy.units
        if copy.is_open(unit.position) and not copy.is_line(unit.position)
    )
    large = sorted(
        ((tokens, unit) for tokens, unit in sized if tokens >= _LEAST_LISTED_TOKENS),
        key=lambda pair: (-pair[0], pair[1].position),
    )[skip:]
    segments = segments_of(copy, segment_tokens)
    segment_lines = _that_fit(
        (f"{span} {tokens:,} {_quoted(copy.units[span.first - 1])}" for span, tokens in segments),
        counter,
        room_tokens // 2,
    )
    room_tokens -= sum(counter.count_text(line) + 1 for line in segment_lines)
    message_lines = _that_fit(
        (f"{u.position + 1} {_kind(u)} {tokens:,} {_quoted(u)}" for tokens, u in large),
        counter,
        room_tokens,
    )
    parts = [
        f"Messages, largest first ({len(message_lines)} of {len(large)}): id kind tokens words",
        *message_lines,
        "",
        f"Segments, oldest first ({len(segment_lines)} of {len(segments)}): ids tokens words",
        *segment_lines,
    ]
    return "\n".join(parts)


def segments_of(copy: ContextCopy, most_tokens: int) -> list[tuple[Span, int]]:
    """Messages in a row that can be compressed together, oldest first, with their sizes.

    They end where a message is protected or was compressed, before a message of the person's,
    and between exchanges where they would be larger than `most_tokens`; small ones go together.
    """
    found: list[tuple[Span, int]] = []
    group: list[int] = []
    size = 0
    for exchange in _exchanges(copy.units):
        tokens = sum(map(copy.tokens, exchange))
        is_open = all(map(copy.is_open, exchange))
        begins_turn = isinstance(copy.units[exchange[0]].message, UserMessage)
        if group and (
            not is_open or size + tokens > most_tokens or (begins_turn and size > most_tokens // 4)
        ):
            found.append((Span(group[0] + 1, group[-1] + 1), size))
            group, size = [], 0
        if is_open:
            group += exchange
            size += tokens
    if group:
        found.append((Span(group[0] + 1, group[-1] + 1), size))
    return [(span, tokens) for span, tokens in found if tokens >= _LEAST_SEGMENT_TOKENS]


def contents(copy: ContextCopy, span: Span, counter: TokenCounter, room_tokens: int) -> str:
    """What the messages of `span` say, labelled, escaped and shortened to `room_tokens`."""
    present = copy.present(span)
    text = ""
    for limits in LIMITS:
        text = "\n\n".join(message_texts(present, limits))
        if counter.count_text(text) <= room_tokens:
            return text
    while (tokens := counter.count_text(text)) > room_tokens and len(text) > _SHOWN_CHARS:
        text = shorten_middle(text, len(text) * room_tokens * 9 // (10 * tokens))
    return text


def _exchanges(units: Iterable[Unit]) -> Iterator[list[int]]:
    """Positions that stay together: a reply with its results, or one message."""
    exchange: list[int] = []
    for unit in units:
        if exchange and not isinstance(unit.message, ToolResultMessage):
            yield exchange
            exchange = []
        exchange.append(unit.position)
    if exchange:
        yield exchange


def _that_fit(lines: Iterable[str], counter: TokenCounter, room_tokens: int) -> list[str]:
    taken: list[str] = []
    for line in lines:
        room_tokens -= counter.count_text(line) + 1
        if room_tokens < 0:
            break
        taken.append(line)
    return taken


def _kind(unit: Unit) -> str:
    if unit.output is not None:
        return "result"
    match unit.message:
        case AssistantMessage(tool_calls=calls) if calls:
            return "calls"
        case AssistantMessage():
            return "answer"
        case _:
            return "user"


def _quoted(unit: Unit) -> str:
    """A few words of a message, as a JSON text: nothing in them can pass for a line of ours."""
    output, message = unit.output, unit.message
    if output is not None:
        action = output.action
        words = f"{action.tool} {action.command or action.path}"
    elif isinstance(message, AssistantMessage) and message.tool_calls:
        words = " ".join([message.text, *(call.name for call in message.tool_calls)])
    else:
        words = message.text
    return json.dumps(escape_tags(one_line(words, _SHOWN_CHARS)), ensure_ascii=False)
