"""Make a list of messages valid for every provider: each call answered, ids unique."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import is_not
from typing import TypeVar

from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    BashExecutionMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_tui.text import repair_json, repair_text

NO_RESULT_TEXT = "No result is recorded: the call was interrupted, or it is still running."
"""The text of a result that is missing."""

OPENING_TEXT = "(The beginning of this conversation is not part of the context.)"
"""The user message put first if a conversation would otherwise begin with a reply."""

PartT = TypeVar("PartT", UserContent, AssistantContent)


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """A message for the model and the entry it comes from.

    A result that replaces a lost one has the id of the reply with the call; the id is empty for a
    message without an entry.
    """

    entry_id: str
    message: Message


@dataclass(slots=True)
class _Slot:
    """One call of a reply, waiting for its result."""

    call: ToolCall
    reply: ContextMessage
    result: ContextMessage | None = None


def normalise_messages(
    messages: Sequence[ContextMessage], after: Sequence[ContextMessage] = ()
) -> tuple[ContextMessage, ...]:
    """`messages` in a form that every provider accepts; linear time, valid messages unchanged.

    Each reply is directly followed by the results of its calls, one each, in the order of the
    calls. A result belongs to the newest earlier reply that still waits for its id, so that ids
    reused in a later turn are distinguished; the later use gets a new id. Missing results are added
    (as errors); results without a call and empty messages are removed. The first message is the
    user's. Lone surrogates are replaced.

    Args:
        messages: The messages as written.
        after: Valid messages that come before them and wait for no result.
    """
    sound = [repair(item) for item in messages]
    slots_of = _pair(sound)
    normalised: list[ContextMessage] = []
    replies = (item.message for item in after if isinstance(item.message, AssistantMessage))
    used_ids = {call.id for reply in replies for call in reply.tool_calls}
    for position, item in enumerate(sound):
        match item.message:
            case ToolResultMessage():
                continue
            case AssistantMessage() as reply if slots := slots_of.get(position):
                normalised += _with_results(item, reply, slots, used_ids)
            case AssistantMessage() as reply if not reply.text.strip():
                continue
            case UserMessage() as said if not said.text.strip() and not said.images:
                continue
            case _:
                normalised.append(item)
    if normalised and not after and isinstance(normalised[0].message, AssistantMessage):
        opening = UserMessage(content=OPENING_TEXT, timestamp=normalised[0].message.timestamp)
        normalised.insert(0, ContextMessage("", opening))
    return tuple(normalised)


def _pair(messages: Sequence[ContextMessage]) -> dict[int, list[_Slot]]:
    """The calls of each reply, by its position, with their results."""
    slots_of: dict[int, list[_Slot]] = {}
    waiting: dict[str, list[_Slot]] = {}
    for position, item in enumerate(messages):
        message = item.message
        if isinstance(message, AssistantMessage):
            slots = [_Slot(call, item) for call in message.tool_calls]
            slots_of[position] = slots
            for slot in reversed(slots):
                waiting.setdefault(slot.call.id, []).append(slot)
        elif isinstance(message, ToolResultMessage) and (same := waiting.get(message.tool_call_id)):
            same.pop().result = item
    return slots_of


def _with_results(
    item: ContextMessage, reply: AssistantMessage, slots: list[_Slot], used_ids: set[str]
) -> Iterator[ContextMessage]:
    new_ids = [_unique_id(slot, number, used_ids) for number, slot in enumerate(slots)]
    if any(slot.call.id != new_id for slot, new_id in zip(slots, new_ids, strict=True)):
        ids = iter(new_ids)
        parts = tuple(
            part.model_copy(update={"id": next(ids)}) if isinstance(part, ToolCall) else part
            for part in reply.content
        )
        item = ContextMessage(item.entry_id, reply.model_copy(update={"content": parts}))
    yield item
    for slot, new_id in zip(slots, new_ids, strict=True):
        yield _result(slot, new_id, reply)


def _unique_id(slot: _Slot, number: int, used_ids: set[str]) -> str:
    candidate = slot.call.id
    attempt = 0
    while not candidate or candidate in used_ids:
        candidate = f"call_{slot.reply.entry_id}_{number}" + (f"_{attempt}" if attempt else "")
        attempt += 1
    used_ids.add(candidate)
    return candidate


def _result(slot: _Slot, call_id: str, reply: AssistantMessage) -> ContextMessage:
    if slot.result is None:
        made_up = ToolResultMessage(
            tool_call_id=call_id,
            tool_name=slot.call.name,
            content=(TextContent(text=NO_RESULT_TEXT),),
            is_error=True,
            timestamp=reply.timestamp,
        )
        return ContextMessage(slot.reply.entry_id, made_up)
    message = slot.result.message
    assert isinstance(message, ToolResultMessage)
    if message.tool_call_id == call_id and message.tool_name == slot.call.name:
        return slot.result
    changes = {"tool_call_id": call_id, "tool_name": slot.call.name}
    return ContextMessage(slot.result.entry_id, message.model_copy(update=changes))


def repair(item: ContextMessage) -> ContextMessage:
    """`item` with lone surrogates replaced; the same object if there are none."""
    message = item.message
    match message:
        case BashExecutionMessage(command=command, output=output):
            fields = {"command": repair_text(command), "output": repair_text(output)}
        case UserMessage(content=str() as text):
            fields = {"content": repair_text(text)}
        case UserMessage(content=tuple() as parts) | ToolResultMessage(content=parts):
            fields = {"content": _repair_parts(parts)}
        case AssistantMessage(content=parts):
            fields = {"content": _repair_parts(parts)}
        case _:
            return item
    changes = {name: value for name, value in fields.items() if value is not getattr(message, name)}
    return ContextMessage(item.entry_id, message.model_copy(update=changes)) if changes else item


def _repair_parts(parts: tuple[PartT, ...]) -> tuple[PartT, ...]:
    clean = tuple(map(_repair_part, parts))
    return clean if any(map(is_not, clean, parts)) else parts


def _repair_part(part: PartT) -> PartT:
    match part:
        case TextContent(text=text):
            name, before, after = "text", text, repair_text(text)
        case ThinkingContent(thinking=thinking):
            name, before, after = "thinking", thinking, repair_text(thinking)
        case ToolCall(arguments=arguments):
            name, before, after = "arguments", arguments, repair_json(arguments)
        case _:
            return part
    return part if after is before else part.model_copy(update={name: after})
