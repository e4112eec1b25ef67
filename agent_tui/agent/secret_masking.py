"""Keeping the providers' keys out of what is stored and sent."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import JsonValue

from agent_tui.messages import AssistantMessage, Message, ThinkingContent
from agent_tui.secret_text import mask_values

_MessageT = TypeVar("_MessageT", bound=Message)


def without_secrets(message: _MessageT, values: Sequence[str]) -> _MessageT:
    """`message` without any of `values`, in whatever field they are.

    Returns the same object when there is nothing to mask. Thinking that was changed loses its
    signature, which would not fit any more.
    """
    if not values:
        return message
    before: JsonValue = message.model_dump(mode="json", by_alias=True)
    after = _masked(before, values)
    if after == before:
        return message
    changed = type(message).model_validate(after)
    if isinstance(message, AssistantMessage) and isinstance(changed, AssistantMessage):
        content = tuple(
            new.model_copy(update={"signature": None})
            if isinstance(new, ThinkingContent) and new != old
            else new
            for old, new in zip(message.content, changed.content, strict=True)
        )
        return changed.model_copy(update={"content": content})
    return changed


def _masked(value: JsonValue, values: Sequence[str]) -> JsonValue:
    match value:
        case str():
            return mask_values(value, values)
        case list():
            return [_masked(item, values) for item in value]
        case dict():
            return {mask_values(key, values): _masked(item, values) for key, item in value.items()}
        case _:
            return value
