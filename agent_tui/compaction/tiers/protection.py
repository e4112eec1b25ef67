"""Which messages no tier may touch."""

from collections.abc import Sequence

from agent_tui.config import CompactionSettings
from agent_tui.messages import AssistantMessage, Message, ToolResultMessage


def protected_positions(
    messages: Sequence[Message],
    tokens: Sequence[int],
    is_said: Sequence[bool],
    settings: CompactionSettings,
    window: int,
) -> frozenset[int]:
    """Positions of the last messages, at least what is newest and what the person said last.

    They are the last ``protected_messages`` that fit ``keep_recent`` tokens together. Whatever
    its size, the newest reply is among them with its results, which the model may not have
    looked at yet, and so is the person's last message.

    Args:
        messages: The conversation as it was written.
        tokens: Of each message as it was written, so that edits do not move the border.
        is_said: Whether the person wrote the message (results can have the user's role too).
        settings: ``protected_messages`` and ``keep_recent_tokens``.
        window: Context window in tokens.
    """
    first = len(messages)
    room = settings.keep_recent(window)
    while first > 0 and len(messages) - first < settings.protected_messages:
        room -= tokens[first - 1]
        if room < 0:
            break
        first -= 1
    newest = range(min(first, _newest_exchange(messages)), len(messages))
    said = [position for position, is_own in enumerate(is_said) if is_own]
    return frozenset((*newest, *said[-1:]))


def _newest_exchange(messages: Sequence[Message]) -> int:
    """Where the newest message is, or the reply whose results come last."""
    at = len(messages) - 1
    while at > 0 and isinstance(messages[at], ToolResultMessage):
        at -= 1
    return at if at >= 0 and isinstance(messages[at], AssistantMessage) else len(messages) - 1
