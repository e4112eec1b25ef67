"""Finds and calls tools of MCP servers that do not fit the context.

Only offered if tools were left out. `call_tool` lets a tool be called as soon as it is found, even
if the provider rejects undeclared names, and does not change the request's tools, and so its cached
prefix; from the next turn on the tool itself is offered.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from pydantic import Field, JsonValue

from agent_tui.features.mcp.remote_tools import RemoteTool
from agent_tui.messages import JsonObject, ToolDetails, ToolSpec
from agent_tui.text_search import fold
from agent_tui.tool_names import is_remote
from agent_tui.tools.base import ToolArguments, ToolOutput
from agent_tui.tools.server_offer import FIND_TOOLS
from agent_tui.tools.shorten import OutputLimits, cut_line, size_bytes

CALL_TOOL: Final = "call_tool"
FINDERS: Final = frozenset({FIND_TOOLS, CALL_TOOL})

_MOST_FOUND = 6
_MOST_NAMED = 12
"""Further matching tools are listed without their arguments."""

_NAME_WEIGHT = 3
_SHORTEST_STEM = 4
_CATALOG_CHARS = 1_600
_LINE_CHARS = 140
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FIND = (
    "Find tools of connected MCP servers by what they do. Not all are listed here. "
    "Call what you find with call_tool.\nServers, in their own words:"
)
_CALL = "Call a tool that find_tools found."


@dataclass(frozen=True, slots=True)
class ServerLine:
    """A server as the model sees it: name, description and number of tools."""

    name: str
    words: str
    tools: int


class FindToolsArguments(ToolArguments):
    """Arguments of ``find_tools``."""

    query: str = Field(min_length=1, max_length=400)


def finder_specs(servers: Sequence[ServerLine]) -> tuple[ToolSpec, ...]:
    """The specs of the finder tools; `servers` share a limited number of characters."""
    room = min(_LINE_CHARS, _CATALOG_CHARS // max(len(servers), 1))
    lines = [cut_line(f"{s.name} ({s.tools}): {s.words}", room) for s in servers]
    query: JsonObject = {"type": "string", "description": "Words for what to do"}
    name: JsonObject = {"type": "string"}
    given: JsonObject = {"type": "object"}
    return (
        _spec(FIND_TOOLS, "\n".join([_FIND, *lines]), {"query": query}),
        _spec(CALL_TOOL, _CALL, {"name": name, "arguments": given}),
    )


def _spec(name: str, description: str, properties: JsonObject) -> ToolSpec:
    required: list[JsonValue] = list(properties)
    schema: JsonObject = {"type": "object", "properties": properties, "required": required}
    return ToolSpec(name=name, description=description, parameters=schema)


def parse_call(arguments: JsonObject) -> tuple[str, JsonObject] | None:
    """The call in the arguments of ``call_tool``; None if there is none."""
    name, given = arguments.get("name"), arguments.get("arguments", {})
    if isinstance(given, str):
        try:
            given = cast("JsonValue", json.loads(given or "{}"))
        except (ValueError, RecursionError):
            return None
    if isinstance(name, str) and is_remote(name) and isinstance(given, dict):
        return name, given
    return None


def search_tools(query: str, tools: Sequence[RemoteTool]) -> list[RemoteTool]:
    """The tools that match `query`, the best first: rare words and words in names count most."""
    wanted = set(_words(query))
    indexed = [(tool, _weights(tool)) for tool in tools]
    spread = Counter(word for _, weights in indexed for word in weights)

    def rarity(word: str) -> float:
        return math.log(1 + len(indexed) / spread[word])

    def score(weights: Counter[str]) -> float:
        return sum(
            max((weights[word] * rarity(word) for word in _alike(term, weights)), default=0.0)
            for term in wanted
        )

    scored = [(score(weights), tool) for tool, weights in indexed]
    return [tool for points, tool in sorted(scored, key=lambda each: -each[0]) if points]


def describe_found(
    query: str, found: Sequence[RemoteTool], limits: OutputLimits
) -> tuple[ToolOutput, tuple[str, ...]]:
    """What the model is told about matching tools, and the names of those described in full."""
    if not found:
        text = f"No tool matches {query!r}. Try other words, or the name of a server."
        return ToolOutput(text, ToolDetails(summary="none")), ()
    blocks: list[str] = []
    room = limits.max_bytes
    for tool in found[:_MOST_FOUND]:
        block = _block(tool)
        room -= size_bytes(block)
        if blocks and room < 0:
            break
        blocks.append(block)
    told = len(blocks)
    others = ", ".join(tool.name for tool in found[told : told + _MOST_NAMED])
    more = [f"Other matches: {others}"] if others else []
    text = "\n\n".join(["Tools, as their servers describe them:", *blocks, *more])
    details = ToolDetails(summary=f"{told} tool{'' if told == 1 else 's'}")
    return ToolOutput(text, details), tuple(tool.name for tool in found[:told])


def _block(tool: RemoteTool) -> str:
    schema = json.dumps(tool.spec.parameters, ensure_ascii=False, separators=(",", ":"))
    return f"## {tool.name}\n{tool.spec.description}\narguments: {schema}"


def _weights(tool: RemoteTool) -> Counter[str]:
    weights = Counter(set(_words(tool.spec.description)))
    for word in set(_words(f"{tool.server} {tool.own_name}")):
        weights[word] = _NAME_WEIGHT
    return weights


def _words(text: str) -> list[str]:
    """The words of `text`, with ``snake_case`` and ``camelCase`` split."""
    return _WORD.findall(fold(_CAMEL.sub(" ", text)))


def _alike(term: str, weights: Counter[str]) -> Iterator[str]:
    """The words that match `term`: itself, and others with the same beginning."""
    for word in weights:
        short, long = sorted((term, word), key=len)
        if word == term or (len(short) >= _SHORTEST_STEM and long.startswith(short)):
            yield word
