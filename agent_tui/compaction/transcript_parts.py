"""Cutting a conversation's text into parts that a summariser's window can hold."""

import math
from collections.abc import Sequence

from agent_tui.compaction.transcript_text import LIMITS, message_texts
from agent_tui.messages import Message
from agent_tui.tokens import TokenCounter

_GOOD_PART_COUNT = 6
"""More parts than this, and the messages are shortened harder instead."""

_MOST_PARTS = 24


def split_transcript(
    messages: Sequence[Message], counter: TokenCounter, room_tokens: int
) -> list[str]:
    """`messages` as text in as few parts of at most `room_tokens` as sensible, in order.

    Always at least one part. With the tightest shortening and still more than `_MOST_PARTS`,
    the oldest parts after the first are left out, and the text says so.
    """
    parts: list[str] = []
    for limits in LIMITS:
        parts = _pack(message_texts(messages, limits), counter, room_tokens)
        if len(parts) <= _GOOD_PART_COUNT:
            break
    if len(parts) > _MOST_PARTS:
        left_out = len(parts) - _MOST_PARTS
        remark = f"[{left_out} of {len(parts)} parts of the conversation are left out here.]"
        parts = [f"{parts[0]}\n\n{remark}", *parts[left_out + 1 :]]
    return parts or ["(no text)"]


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
