"""A conversation as plain labelled text, for a model that should describe it, not continue it."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from pydantic import JsonValue

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    Message,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_tui.omissions import omission_mark, shorten_middle
from agent_tui.tokens import TokenCounter

FACT_TAGS = (
    "said-by-the-person",
    "pinned-constraints",
    "task-text",
    "work-state",
    "findings",
    "open-errors",
    "failures",
    "commands-run",
    "files-now",
    "kept",
    "way-so-far",
    "read-files",
    "modified-files",
    "messages-below",
)
"""The blocks that code writes around a summary's prose."""

OWN_TAGS = ("conversation", "previous-summary", "focus", "summary", "excerpt", *FACT_TAGS)
"""Tags with a meaning in our prompts and summaries, which quoted text must not contain."""

_OWN_TAG = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(OWN_TAGS)})\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextLimits:
    """Most characters of each kind of message."""

    user: int = 20_000
    reply: int = 8_000
    argument: int = 400
    result: int = 2_000


LIMITS = (
    TextLimits(),
    TextLimits(user=6_000, reply=3_000, argument=200, result=600),
    TextLimits(user=2_000, reply=1_000, argument=100, result=200),
)
"""From generous to tight; the tighter ones are for models with a small window."""

_MARK_TOKENS = 20
_NO_LIMIT = 1_000_000_000
UNLIMITED = TextLimits(user=_NO_LIMIT, reply=_NO_LIMIT, argument=_NO_LIMIT, result=_NO_LIMIT)


def escape_tags(text: str) -> str:
    """`text` with our own tags escaped, so that quoted text cannot open or close a block."""
    return _OWN_TAG.sub("&lt;", text)


def tag_blocks(*blocks: tuple[str, Sequence[str]]) -> str:
    """The lines of each block that has any, escaped, between tags of its name."""
    return "\n\n".join(
        f"<{tag}>\n{escape_tags(chr(10).join(lines))}\n</{tag}>" for tag, lines in blocks if lines
    )


def message_texts(messages: Iterable[Message], limits: TextLimits = LIMITS[0]) -> list[str]:
    """One labelled, shortened and escaped text for each message that is not empty."""
    texts = (_message_text(message, limits) for message in messages)
    return [escape_tags(text) for text in texts if text]


def those_that_fit(texts: Iterable[str], room: int, size_of: Callable[[str], int]) -> list[str]:
    """The first of `texts` that fit into `room` together; `size_of` measures each."""
    taken: list[str] = []
    for text in texts:
        room -= size_of(text)
        if room < 0:
            break
        taken.append(text)
    return taken


def fit_texts(
    texts_of: Callable[[TextLimits], Sequence[str]],
    counter: TokenCounter,
    room_tokens: int,
) -> str:
    """Texts in at most about `room_tokens`, shortened no more than needed.

    If the tightest limits are not enough, texts in the middle are left out: the first ones state
    the subject, the last ones the present state.

    Args:
        texts_of: Returns the texts within the given limits.
        counter: Counts tokens.
        room_tokens: Available tokens.
    """
    texts: Sequence[str] = ()
    for limits in LIMITS:
        texts = texts_of(limits)
        whole = "\n\n".join(texts)
        if counter.count_text(whole) <= room_tokens:
            return whole or "(no text)"
    sizes = [counter.count_text(text) + 2 for text in texts]
    first, last, room = 0, len(texts), room_tokens - _MARK_TOKENS
    while first < last:
        takes_first = first <= (len(texts) - last) // 2
        room -= sizes[first] if takes_first else sizes[last - 1]
        if room < 0 and first:
            break
        first, last = (first + 1, last) if takes_first else (first, last - 1)
    mark = [omission_mark(f"{last - first} messages")] if first < last else []
    text = "\n\n".join([*texts[:first], *mark, *texts[last:]])
    return beginning_of(text, room_tokens, counter)  # one text alone may exceed the space


def beginning_of(text: str, max_tokens: int, counter: TokenCounter) -> str:
    """As much of the beginning of `text` as fits into `max_tokens`.

    It ends with a line if that costs less than a quarter of it.
    """
    tokens = counter.count_text(text)
    if tokens <= max_tokens:
        return text
    head = text[: len(text) * max(max_tokens, 0) // tokens]
    while head and counter.count_text(head) > max_tokens:
        head = head[: len(head) * 9 // 10]
    lines = head.rpartition("\n")[0]
    return lines if 4 * len(lines) > 3 * len(head) else head


def _message_text(message: Message, limits: TextLimits) -> str:
    match message:
        case UserMessage():
            return _label("User", shorten_middle(_content_text(message.content), limits.user))
        case AssistantMessage():
            return _reply_text(message, limits)
        case ToolResultMessage():
            label = f"Tool {'error' if message.is_error else 'result'} ({message.tool_name})"
            body = shorten_middle(_content_text(message.content), limits.result)
            return _label(label, body or "(empty)")
        case BashExecutionMessage():
            if message.exclude_from_context:
                return ""
            ending = "" if message.exit_code is None else f", exit {message.exit_code}"
            ending = ", interrupted" if message.cancelled else ending
            output = shorten_middle(message.output, limits.result)
            command = shorten_middle(message.command, limits.argument)
            return _label(f"User ran a command{ending}", f"$ {command}\n{output}")
        case _:
            assert_never(message)


def _reply_text(message: AssistantMessage, limits: TextLimits) -> str:
    parts: list[str] = []
    if text := message.text.strip():
        parts.append(_label("Assistant", shorten_middle(text, limits.reply)))
    parts.extend(
        _label("Assistant calls", call_text(call, limits.argument)) for call in message.tool_calls
    )
    if message.stop_reason == "aborted" and parts:
        parts.append("[The user interrupted this reply.]")
    return "\n".join(parts)


def call_text(call: ToolCall, max_argument_chars: int) -> str:
    """``name key=value ...`` with each value shortened.

    It has no brackets as in code: a small model that copies this form into its summary would make
    its own next call look like a quotation.
    """
    arguments = " ".join(
        f"{shorten_middle(key, max_argument_chars)}={_value_text(value, max_argument_chars)}"
        for key, value in call.arguments.items()
    )
    return f"{call.name} {shorten_middle(arguments, 6 * max_argument_chars)}".rstrip()


def _value_text(value: JsonValue, max_chars: int) -> str:
    if isinstance(value, str):
        return json.dumps(shorten_middle(value, max_chars), ensure_ascii=False)
    return shorten_middle(json.dumps(value, ensure_ascii=False), max_chars)


def _content_text(content: str | tuple[UserContent, ...]) -> str:
    if isinstance(content, str):
        return content.strip()
    return "\n".join(
        "[image]" if isinstance(part, ImageContent) else part.text for part in content
    ).strip()


def _label(label: str, body: str) -> str:
    return f"[{label}]: {body}" if body else ""
