"""A conversation's text within what a summariser's window can hold."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.compaction.transcript.text import LIMITS, message_texts
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as text, in order; `left_out` of its messages are not in it."""

    text: str
    left_out: int = 0


def bounded_transcript(
    messages: Sequence[Message], counter: TokenCounter, room_tokens: int
) -> Transcript:
    """`messages` as text of at most `room_tokens`, shortened no more than is needed.

    Where that takes more than the tightest shortening, messages are left out: old tool results
    first, then old replies, and the user's own words last.
    """
    for limits in LIMITS:
        text = "\n\n".join(message_texts(messages, limits))
        if counter.count_text(text) <= room_tokens:
            return Transcript(text or "(no text)")
    texts = ["\n\n".join(message_texts([message], LIMITS[-1])) for message in messages]
    sizes = [counter.count_text(text) + 2 if text else 0 for text in texts]
    first_request = next((i for i, m in enumerate(messages) if isinstance(m, UserMessage)), -1)
    by_worth = sorted(
        (index for index, size in enumerate(sizes) if size),
        key=lambda index: (index == first_request, _worth(messages[index]), index),
    )
    remark = "[{} of {} messages are left out here.]"
    over = sum(sizes) + counter.count_text(remark) + 8 - room_tokens
    left_out: set[int] = set()
    for index in by_worth[:-1]:
        if over <= 0:
            break
        left_out.add(index)
        over -= sizes[index]
    kept = [text for index, text in enumerate(texts) if text and index not in left_out]
    text = "\n\n".join([remark.format(len(left_out), len(messages)), *kept])
    while counter.count_text(text) > room_tokens:
        text = text[: len(text) * 9 // 10]
    return Transcript(text, len(left_out))


def _worth(message: Message) -> int:
    """How late a message is left out."""
    match message:
        case ToolResultMessage() | BashExecutionMessage():
            return 0
        case AssistantMessage():
            return 1
        case UserMessage():
            return 2
