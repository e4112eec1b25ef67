"""Turns a conversation into text for models whose template does not support tools."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, assert_never

from pydantic import JsonValue

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    JsonObject,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserContent,
    UserMessage,
)
from agent_tui.providers.wires.parts import CONTINUE, NO_OUTPUT, user_parts

CALL_BEGIN: Final = "<tool_call>"
CALL_END: Final = "</tool_call>"

_HOW_TO = f"""\
# Tools
To use a tool, end your reply with one call, in this form:
{CALL_BEGIN}
{{"name": "TOOL", "arguments": {{"ARGUMENT": "VALUE"}}}}
{CALL_END}
Then stop: the next message has the result in <tool_response>. Never write results yourself. \
To show a call without making it, put it between backticks.
The tools (? marks optional arguments; those without a type are strings):"""

_CLOSES_RESPONSE = re.compile(r"</(?=tool_response)", re.I)
_Turn: TypeAlias = UserMessage | AssistantMessage


def tool_prompt(tools: Sequence[ToolSpec]) -> str:
    """The part of a system prompt about `tools`: how to call one, and one line for each.

    The form is shown with placeholders, never with a call that could be made.
    """
    lines = [f"- {tool.name}{_signature(tool.parameters)}: {_line(tool)}" for tool in tools]
    return "\n".join([_HOW_TO, *lines])


def as_text(messages: Iterable[Message]) -> tuple[Message, ...]:
    """`messages` with calls and results as text, roles alternating, the user's first.

    Thinking is left out. Neighbours of one role are merged: many templates require it.
    """
    turns: list[_Turn] = []
    for message in messages:
        turn = _turn(message)
        if turn is None:
            continue
        if turns and turns[-1].role == turn.role:
            turns[-1] = _merge(turns[-1], turn)
        else:
            turns.append(turn)
    if turns and turns[0].role != "user":
        turns.insert(0, UserMessage(content=CONTINUE))
    return tuple(turns)


def _turn(message: Message) -> _Turn | None:
    """`message` as text; None if nothing in it can be sent."""
    match message:
        case UserMessage() | BashExecutionMessage():
            parts = user_parts(message)
            return UserMessage(content=parts) if parts else None
        case AssistantMessage():
            text = _reply_text(message)
            if not text:
                return None
            return message.model_copy(update={"content": (TextContent(text=text),)})
        case ToolResultMessage():
            images = [part for part in message.content if isinstance(part, ImageContent)]
            text = _CLOSES_RESPONSE.sub("<\\\\/", message.text).strip() or NO_OUTPUT
            answer = f'<tool_response name="{message.tool_name}">\n{text}\n</tool_response>'
            return UserMessage(content=(TextContent(text=answer), *images))
        case _:
            assert_never(message)


def _reply_text(message: AssistantMessage) -> str:
    calls = [_call_text(call) for call in message.tool_calls]
    return "\n".join(part for part in (message.text.strip(), *calls) if part)


def _call_text(call: ToolCall) -> str:
    value = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
    return f"{CALL_BEGIN}\n{value}\n{CALL_END}"


def _merge(first: _Turn, second: _Turn) -> _Turn:
    if isinstance(first, AssistantMessage):
        text = f"{first.text}\n\n{second.text}"
        return first.model_copy(update={"content": (TextContent(text=text),)})
    parts = [part for message in (first, second) for part in _parts(message)]
    merged: list[UserContent] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, TextContent) and isinstance(last, TextContent):
            merged[-1] = TextContent(text=f"{last.text}\n\n{part.text}")
        else:
            merged.append(part)
    return UserMessage(content=tuple(merged))


def _parts(message: _Turn) -> tuple[UserContent, ...]:
    return user_parts(message) if isinstance(message, UserMessage) else ()


def _line(tool: ToolSpec) -> str:
    return " ".join(tool.description.split())


def _signature(schema: JsonObject) -> str:
    """The arguments in brackets: ``(path, limit?: integer (number of lines))``."""
    return f"({', '.join(_members(schema))})"


def _members(schema: JsonObject) -> list[str]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return []
    needed = required if isinstance(required, list) else []
    return [
        f"{name}{'' if name in needed else '?'}{_type(value)}" for name, value in properties.items()
    ]


def _type(schema: JsonValue) -> str:
    if not isinstance(schema, dict):
        return ""
    kind = _kind(schema)
    note = schema.get("description")
    return (f": {kind}" if kind != "string" else "") + (f" ({note})" if note else "")


def _kind(schema: JsonObject) -> str:
    choices, items = schema.get("enum"), schema.get("items")
    if isinstance(choices, list):
        return "|".join(str(choice) for choice in choices)
    if isinstance(items, dict):
        return f"[{_kind(items)}]"
    if "properties" in schema:
        return f"{{{', '.join(_members(schema))}}}"
    return str(schema.get("type", "any"))
