"""Cutting a conversation's text into parts that a summariser's window can hold."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from agent_tui.compaction.transcript.text import LIMITS, message_texts
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.tokens import TokenCounter

_GOOD_PART_COUNT = 6
"""More parts than this, and the messages are shortened harder instead."""

MOST_PARTS = 8
"""Each is a request of its own; what a small window cannot take in that many is left out."""

_FILLED = (0.9, 0.7, 0.45)
"""How full parts may turn out: what does not fit into one begins the next. Two that follow each
other hold more than one can, so that the last is always enough."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as text, in order; `left_out` of its messages are not in it."""

    parts: tuple[str, ...]
    left_out: int = 0


def split_transcript(
    messages: Sequence[Message], counter: TokenCounter, room_tokens: int
) -> Transcript:
    """`messages` as text in as few parts of at most `room_tokens` as sensible.

    Always at least one part and at most `MOST_PARTS`. Where that takes more than the tightest
    shortening, messages are left out: old tool results first, then old replies, and the
    person's own words last.
    """
    parts: list[str] = []
    for limits in LIMITS:
        parts = _pack(message_texts(messages, limits), counter, room_tokens)
        if len(parts) <= _GOOD_PART_COUNT:
            break
    if len(parts) <= MOST_PARTS:
        return Transcript(tuple(parts) or ("(no text)",))
    return _bounded(messages, counter, room_tokens)


def _bounded(messages: Sequence[Message], counter: TokenCounter, room_tokens: int) -> Transcript:
    texts = ["\n\n".join(message_texts([message], LIMITS[-1])) for message in messages]
    sizes = [counter.count_text(text) + 2 if text else 0 for text in texts]
    first_request = next((i for i, m in enumerate(messages) if isinstance(m, UserMessage)), -1)
    by_worth = sorted(
        (index for index, size in enumerate(sizes) if size),
        key=lambda index: (index == first_request, _worth(messages[index]), index),
    )
    transcript = Transcript(())
    for filled in _FILLED:
        excess = sum(sizes) - int(MOST_PARTS * room_tokens * filled)
        before = accumulate((sizes[index] for index in by_worth), initial=0)
        left_out = {i for i, gone in zip(by_worth, before, strict=False) if gone < excess}
        remark = f"[{len(left_out)} of {len(messages)} messages are left out here.]"
        kept = [text for index, text in enumerate(texts) if text and index not in left_out]
        parts = _pack([remark, *kept], counter, room_tokens)
        transcript = Transcript(tuple(parts), len(left_out))
        if len(parts) <= MOST_PARTS:
            break
    return transcript


def _worth(message: Message) -> int:
    """How late a message is left out."""
    match message:
        case ToolResultMessage() | BashExecutionMessage():
            return 0
        case AssistantMessage():
            return 1
        case UserMessage():
            return 2


def _pack(texts: Sequence[str], counter: TokenCounter, room_tokens: int) -> list[str]:
    parts: list[list[str]] = []
    free = 0
    for text in texts:
        for piece in _pieces(text, counter, room_tokens):
            size = counter.count_text(piece) + 2
            if size > free:
                parts.append([])
                free = room_tokens
            parts[-1].append(piece)
            free -= size
    return ["\n\n".join(pieces) for pieces in parts]


def _pieces(text: str, counter: TokenCounter, room_tokens: int) -> list[str]:
    """`text` in equal pieces of at most `room_tokens`."""
    tokens = counter.count_text(text) + 2
    if tokens <= room_tokens or len(text) < 2:
        return [text]
    size = max(1, len(text) // math.ceil(1.2 * tokens / room_tokens))
    pieces = (text[start : start + size] for start in range(0, len(text), size))
    return [small for piece in pieces for small in _pieces(piece, counter, room_tokens)]
