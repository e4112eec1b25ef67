"""The tools a model was offered, and how it writes a call of one."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.text import repair_json
from agent_tui.tool_names import find_meant_tool

NAME_KEYS = ("name", "tool", "function", "tool_name", "function_name", "action")
ARGUMENT_KEYS = ("arguments", "args", "parameters", "params", "input", "action_input", "tool_input")
WRAPPER_KEYS = ("tool_calls", "tool_call", "function_call", "function")
_SIDE_KEYS = frozenset({"type", "id", "call_id", "tool_call_id", "index", "thought", "reasoning"})
_WRAPPER_SIDE_KEYS = _SIDE_KEYS | {"role", "content"}
_NAMESPACE = re.compile(r"(?:functions|default_api|tools?|api)[.:]", re.I)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as the model wrote it, with the offered tool's exact name."""

    name: str
    arguments: JsonObject


class OfferedTools:
    """Finds the tool that a model's text refers to among those it was offered."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._by_name = {tool.name.casefold(): tool for tool in tools}

    def find_tool(self, written: str) -> ToolSpec | None:
        """The tool called `written`, in any case and with or without ``functions.`` before it."""
        name = _NAMESPACE.sub("", written.strip())
        return self._by_name.get(name.casefold())

    def calls(self, value: JsonValue, *, is_tagged: bool = False) -> tuple[WrittenCall, ...]:
        """The calls, if `value` consists only of calls; else none.

        Args:
            value: A JSON value the model wrote.
            is_tagged: Whether it was between tags for calls, so that one without arguments counts.
        """
        if isinstance(value, list):
            parts = [self.calls(item, is_tagged=is_tagged) for item in value]
            return tuple(call for part in parts for call in part) if all(parts) else ()
        if not isinstance(value, dict):
            return ()
        for key in WRAPPER_KEYS:
            inner = value.get(key)
            if isinstance(inner, dict | list):
                is_bare = set(value) <= {key, *_WRAPPER_SIDE_KEYS}
                return self.calls(inner, is_tagged=is_tagged) if is_bare else ()
        return self._single(value, is_tagged)

    def call(self, written_name: str, arguments: JsonObject) -> tuple[WrittenCall, ...]:
        """The call with these parts; none if no such tool was offered."""
        tool = self.find_tool(find_meant_tool(written_name, self._by_name))
        if tool is None or _is_schema(arguments):
            return ()
        mended = repair_json(arguments)
        return (WrittenCall(tool.name, cast(JsonObject, mended)),)

    def _single(self, value: JsonObject, is_tagged: bool) -> tuple[WrittenCall, ...]:
        name_key = next((key for key in NAME_KEYS if key in value), None)
        argument_key = next((key for key in ARGUMENT_KEYS if key in value), None)
        if name_key is None or (argument_key is None and not is_tagged):
            return ()
        if not set(value) <= {name_key, argument_key, *_SIDE_KEYS}:
            return ()
        name = value[name_key]
        arguments = _as_arguments(value.get(argument_key) if argument_key else None)
        if not isinstance(name, str) or arguments is None:
            return ()
        return self.call(name, arguments)


def _as_arguments(value: JsonValue) -> JsonObject | None:
    """`value` as arguments: an object, an object as JSON text, or nothing at all."""
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = cast(JsonValue, json.loads(value, strict=False))
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _is_schema(arguments: JsonObject) -> bool:
    """Whether the model repeats a tool's description instead of calling it."""
    return arguments.get("type") == "object" and isinstance(arguments.get("properties"), dict)
