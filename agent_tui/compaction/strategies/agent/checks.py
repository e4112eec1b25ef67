"""Whether what the compression agent wrote and did can be taken over: code has the last word."""

import re
from collections.abc import Iterable, Sequence

from agent_tui.compaction.draft import CompactionRequest, ledger_of
from agent_tui.compaction.strategies.agent.copy import context_after
from agent_tui.compaction.summary.degeneration import is_noise, is_repetitive, says_nothing
from agent_tui.compaction.summary.source import named_paths
from agent_tui.compaction.summary.validate import sounds_like_refusal
from agent_tui.compaction.transcript.text import TextLimits, escape_tags, message_texts
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import ContextEditEntry
from agent_tui.sessions.replay.normalise import OPENING_TEXT, ContextMessage

_UNLIMITED = 1_000_000_000
_WHOLE = TextLimits(user=_UNLIMITED, reply=_UNLIMITED, argument=_UNLIMITED, result=_UNLIMITED)

_TOKENS_PER_WORD = 200
_MOST_DEMANDED_WORDS = 25

_FOLDER_PATH = re.compile(r"(?<![\w/.:<])/(?:[\w.@+-]+/)+[\w.@+-]*\w")
_SHOWN_PATHS = 3


def text_problem(text: str, original: Iterable[Message], tokens: int) -> str:
    """Why `text` cannot stand for messages, as a clause ("it is empty"); empty if it can.

    Every file and absolute path it names must occur in them.

    Args:
        text: What the agent wrote.
        original: The messages, as they were written and as the model sees them.
        tokens: Their size in the context.
    """
    if says_nothing(text) or is_noise(text):
        return "it says nothing"
    if sounds_like_refusal(text):
        return "it is a refusal"
    if is_repetitive(text):
        return "it repeats itself"
    words = len(text.split())
    if words < min(tokens // _TOKENS_PER_WORD, _MOST_DEMANDED_WORDS):
        return f"{words} words are too few for {tokens:,} tokens"
    known = "\n".join(message_texts(original, _WHOLE)).casefold()
    paths = (
        (named_paths(text) | set(_FOLDER_PATH.findall(text))) if "." in text or "/" in text else ()
    )
    invented = sorted(path for path in paths if path.removeprefix("./").casefold() not in known)
    if invented:
        return f"it names files that do not occur there: {', '.join(invented[:_SHOWN_PATHS])}"
    return ""


def edits_problem(
    request: CompactionRequest,
    edits: Sequence[ContextEditEntry],
    protected_ids: frozenset[str],
) -> str:
    """Why `edits` must not be written, as a clause; empty if they may.

    The context after them can be sent, every message they do not name is as it was, none of
    those is protected, and every rule of the person's that could be read still can.
    """
    edited = {edit.target_id for edit in edits}
    if edited & protected_ids:
        return "a protected message was changed"
    before, after = context_after(request, ()), context_after(request, edits)
    if not is_sendable(after):
        return "the context could no longer be sent"
    if _untouched(before, edited) != _untouched(after, edited):
        return "messages that had to stay unchanged were changed"
    text_before, text_after = _text(before), _text(after)
    pins = (escape_tags(pin) for pin in ledger_of(request).pinned)
    if any(pin in text_before and pin not in text_after for pin in pins):
        return "one of your rules would be lost"
    return ""


def is_sendable(messages: Sequence[ContextMessage]) -> bool:
    """Whether the user's message comes first, and each call has its one result, in order."""
    if not messages or not isinstance(messages[0].message, UserMessage | BashExecutionMessage):
        return False
    waiting: list[str] = []
    seen_ids: set[str] = set()
    for item in messages:
        match item.message:
            case ToolResultMessage(tool_call_id=call_id):
                if not waiting or waiting.pop(0) != call_id:
                    return False
            case _ if waiting:
                return False
            case AssistantMessage() as reply:
                waiting = [call.id for call in reply.tool_calls]
                if seen_ids.intersection(waiting) or not (waiting or reply.text.strip()):
                    return False
                seen_ids.update(waiting)
            case UserMessage() | BashExecutionMessage():
                pass
    return not waiting


def _untouched(items: Sequence[ContextMessage], edited: set[str]) -> list[Message]:
    """What no edit names. Ids are left out: the context makes new ones where they repeat."""
    return [
        _without_ids(item.message)
        for item in items
        if item.entry_id not in edited and not _is_opening(item)
    ]


def _is_opening(item: ContextMessage) -> bool:
    return not item.entry_id and item.message.text == OPENING_TEXT


def _without_ids(message: Message) -> Message:
    match message:
        case AssistantMessage() if message.tool_calls:
            parts = tuple(
                part.model_copy(update={"id": ""}) if isinstance(part, ToolCall) else part
                for part in message.content
            )
            return message.model_copy(update={"content": parts})
        case ToolResultMessage():
            return message.model_copy(update={"tool_call_id": ""})
        case _:
            return message


def _text(items: Sequence[ContextMessage]) -> str:
    return escape_tags("\n".join(item.message.text for item in items))
