"""Tools that are seldom used: the model reads a line about each, and the rest when it asks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject, ToolDetails, ToolSpec
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput, UnderstoodCall

OTHER_TOOL: Final = "other_tool"
_USE: Final = "Call one of these. Without arguments: how to use it."


class OtherToolArguments(ToolArguments):
    """Arguments of `other_tool`. With `arguments`, the call is one of the named tool."""

    name: str
    arguments: dict[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class OtherTool:
    """Says how seldom used tools are called.

    Attributes:
        seldom: The specs of these tools, by name.
    """

    seldom: Mapping[str, ToolSpec]
    name: str = OTHER_TOOL
    description: str = _USE
    arguments_type: type[OtherToolArguments] = OtherToolArguments

    def intent(self, arguments: OtherToolArguments, context: ToolContext) -> Intent:
        """No access outside the program.

        Raises:
            ToolError: There is no such tool.
        """
        self._get(arguments.name)
        return Intent(title=f"how to use {arguments.name}", access="none")

    async def run(self, arguments: OtherToolArguments, context: ToolContext) -> ToolOutput:
        """The description of a tool and the schema of its arguments."""
        spec = self._get(arguments.name)
        schema = json.dumps(spec.parameters, ensure_ascii=False, separators=(",", ":"))
        text = f"{spec.name}: {spec.description}\narguments: {schema}"
        return ToolOutput(text, ToolDetails(summary="described"))

    def _get(self, name: str) -> ToolSpec:
        if name not in self.seldom:
            names = ", ".join(self.seldom)
            raise ToolError(f"{OTHER_TOOL} has no tool {name!r}. Its tools: {names}.")
        return self.seldom[name]


def read_other_call(arguments: JsonObject, seldom: Mapping[str, ToolSpec]) -> UnderstoodCall | None:
    """The call that `arguments` of `other_tool` stand for; None if they ask how to use a tool."""
    name, given = arguments.get("name"), arguments.get("arguments")
    if isinstance(given, str):
        try:
            read: JsonValue = json.loads(given or "null")
        except (ValueError, RecursionError):
            return None
        given = read
    if isinstance(name, str) and name in seldom and isinstance(given, dict):
        return UnderstoodCall(name, given)
    return None


def gather_seldom_tools(specs: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """`specs` with one tool in place of those that are seldom used; it names them in a line each.

    Args:
        specs: In order of use, with or without that tool.
    """
    seldom = (spec for spec in specs if spec.is_seldom)
    lines = [f"{spec.name}: {spec.description.splitlines()[0]}" for spec in seldom]
    offered = (spec for spec in specs if not spec.is_seldom)
    return tuple(
        spec
        if spec.name != OTHER_TOOL
        else spec.model_copy(update={"description": "\n".join((_USE, *lines))})
        for spec in offered
        if lines or spec.name != OTHER_TOOL
    )
