"""The four tools of the compression agent: how it is told of them, and what its calls ask for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import JsonValue

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.text import repair_text

METADATA = "get_compression_metadata"
RESULT = "compress_tool_result"
SEGMENT = "compress_conversation_segment"
VERIFY = "verify_compression_target"

_NUMBERS = re.compile(r"#?(\d{1,7})(?:\s*(?:-|\.\.|to)\s*#?(\d{1,7}))?")
_MOST_SPANS = 200


@dataclass(frozen=True, slots=True)
class Span:
    """Messages by their numbers in the list, both ends included."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class ListMessages:
    """What can be compressed, from the `skip`-th largest message on."""

    skip: int


@dataclass(frozen=True, slots=True)
class CompressResults:
    """Tool results become one line each, or keep their beginning and end."""

    spans: tuple[Span, ...]
    keeps_ends: bool


@dataclass(frozen=True, slots=True)
class CompressSegment:
    """Messages in a row become one text; an empty one asks what they hold."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class VerifyTarget:
    """Whether the context is small enough."""


AgentAction: TypeAlias = ListMessages | CompressResults | CompressSegment | VerifyTarget
"""What one call asks for."""


class BadCallError(ToolError):
    """A call that cannot be carried out: why, and as a hint what the model can do about it."""


TOOLS = (
    ToolSpec(
        name=METADATA,
        description="List the messages that can be compressed, largest first.",
        parameters={
            "type": "object",
            "properties": {
                "skip": {"type": "integer", "description": "How many of the largest to skip."}
            },
            "required": [],
        },
    ),
    ToolSpec(
        name=RESULT,
        description=("Shorten tool results and the arguments of their calls. No text is needed."),
        parameters={
            "type": "object",
            "properties": {
                "ids": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": 'Message ids or ranges: ["4", "10-38"].',
                },
                "keep": {
                    "type": "string",
                    "enum": ["line", "ends"],
                    "description": "line: one line of facts (default). ends: beginning and end.",
                },
            },
            "required": ["ids"],
        },
    ),
    ToolSpec(
        name=SEGMENT,
        description=(
            "Replace all messages from first to last with one text. Call it without text to read "
            "them, then again with the text you wrote."
        ),
        parameters={
            "type": "object",
            "properties": {
                "first": {"type": "integer", "description": "Id of the first message."},
                "last": {"type": "integer", "description": "Id of the last message."},
                "text": {"type": "string", "description": "What replaces them from now on."},
            },
            "required": ["first", "last"],
        },
    ),
    ToolSpec(
        name=VERIFY,
        description="Check whether the target is met. When it is, the work is done.",
        parameters={"type": "object", "properties": {}, "required": []},
    ),
)


def read_call(name: str, arguments: JsonObject) -> AgentAction:
    """What a call asks for; numbers may come as text, and one id instead of a list.

    Raises:
        BadCallError: there is no such tool, or the arguments are none for it.
    """
    match name:
        case "get_compression_metadata":
            return ListMessages(_optional_number(arguments, "skip"))
        case "compress_tool_result":
            return CompressResults(_spans(arguments), arguments.get("keep") == "ends")
        case "compress_conversation_segment":
            return CompressSegment(_segment(arguments), _text(arguments))
        case "verify_compression_target":
            return VerifyTarget()
        case _:
            names = ", ".join(tool.name for tool in TOOLS)
            raise BadCallError(f"There is no tool {name[:60]!r}. Available: {names}.")


def _optional_number(arguments: Mapping[str, JsonValue], key: str) -> int:
    value = arguments.get(key)
    return 0 if value is None else _single(value, key)


def _segment(arguments: Mapping[str, JsonValue]) -> Span:
    first, last = (_single(arguments.get(key), key) for key in ("first", "last"))
    if last < first:
        raise BadCallError(f"last ({last}) comes before first ({first}).")
    return Span(first, last)


def _spans(arguments: Mapping[str, JsonValue]) -> tuple[Span, ...]:
    ids = arguments.get("ids", arguments.get("id"))
    values = ids if isinstance(ids, list) else ids.split(",") if isinstance(ids, str) else [ids]
    if not values or len(values) > _MOST_SPANS:
        raise BadCallError(f"ids must be 1 to {_MOST_SPANS} message ids or ranges.")
    return tuple(_span(value, "ids") for value in values)


def _text(arguments: Mapping[str, JsonValue]) -> str:
    text = arguments.get("text")
    if text is None:
        return ""
    if not isinstance(text, str):
        raise BadCallError("text must be a string.")
    return repair_text(text).replace("\0", "").strip()


def _single(value: JsonValue, key: str) -> int:
    span = _span(value, key)
    if span.first != span.last:
        raise BadCallError(f"{key} must be one number.")
    return span.first


def _span(value: JsonValue, key: str) -> Span:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        value = str(value)
    found = _NUMBERS.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise BadCallError(f"{key}: {str(value)[:60]!r} is not the id of a message.")
    first = int(found[1])
    last = int(found[2] or found[1])
    return Span(min(first, last), max(first, last))
