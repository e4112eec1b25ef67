"""Prepares the tools a server lists for the model: names, descriptions, schemas."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from agent_tui.features.mcp.json_rpc import display_text, items_in
from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.tool_names import REMOTE_PREFIX
from agent_tui.tools.server_spec import ALL_TOOLS, ToolPicks

UNUSABLE: Final = "agent-tui/unusable"
"""In the `_meta` of a tool, why our bridge cannot call it."""

_MAX_TOOLS: Final = 128
"""The most tools of one server; OpenAI accepts no more in a whole request."""

_MAX_PROBLEMS = 50
"""The most unusable tools that are reported individually."""

_MAX_NAME_CHARS = 64
_MAX_REASON_CHARS = 200
_MAX_DESCRIPTION_CHARS = 1_500
_MAX_SCHEMA_CHARS = 12_000
_MAX_DEPTH = 20
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NOT_AT_THE_TOP = frozenset({"$schema", "$id", "title", "oneOf", "anyOf", "allOf", "not", "enum"})
"""Schema keywords; providers refuse the last of these at the top level."""


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """One tool. `own_name` is the server's name for it; `spec` is what the model sees.

    `reads_resources` marks the tool that we add to read the server's resources.
    """

    server: str
    own_name: str
    spec: ToolSpec
    reads_resources: bool = False

    @property
    def name(self) -> str:
        """The name that the model calls: ``mcp__server__tool``."""
        return self.spec.name


def read_tools(
    server: str, listed: Sequence[JsonValue], picks: ToolPicks = ALL_TOOLS
) -> tuple[tuple[RemoteTool, ...], tuple[str, ...]]:
    """The tools that can be offered of those a server lists, and why others cannot.

    Not for the event loop.

    Args:
        server: Name of the server.
        listed: What it lists.
        picks: Which of them the user wants; others are ignored.

    Returns:
        The tools by name; a line for each of the first that are left out.
    """
    tools: dict[str, RemoteTool] = {}
    problems: list[str] = []
    unread = 0
    for number, item in enumerate(listed, 1):
        if len(tools) >= _MAX_TOOLS:
            unread += 1
            continue
        try:
            tool = _tool(server, item)
            if not picks.is_offered(tool.own_name):
                continue
            if tool.name in tools:
                raise ValueError("another tool has this name")
            tools[tool.name] = tool
        except ValueError as error:
            problems.append(f"tool {_quote_name(item) or number} left out: {error}")
    if unsaid := len(problems) - _MAX_PROBLEMS:
        problems[_MAX_PROBLEMS:] = [f"{unsaid:,} more tools left out"] if unsaid > 0 else []
    if unread:
        problems.append(f"{unread:,} tools left out: more than {_MAX_TOOLS}")
    return tuple(tools[name] for name in sorted(tools)), tuple(problems)


def _tool(server: str, item: JsonValue) -> RemoteTool:
    if not isinstance(item, dict):
        raise ValueError("it is not an object")
    own_name, described = item.get("name"), item.get("description")
    if not isinstance(own_name, str) or not own_name.strip():
        raise ValueError("it has no name")
    meta = item.get("_meta")
    if isinstance(meta, dict) and UNUSABLE in meta:
        raise ValueError(display_text(meta[UNUSABLE], _MAX_REASON_CHARS))
    match item.get("execution"):
        case {"taskSupport": "required"}:
            raise ValueError("it runs only as a task, which is not supported")
        case _:
            pass
    words = described if isinstance(described, str) and described.strip() else own_name
    spec = ToolSpec(
        name=_name_for_model(server, own_name),
        description=display_text(words, _MAX_DESCRIPTION_CHARS, keep_lines=True),
        parameters=_parameters(item.get("inputSchema")),
    )
    return RemoteTool(server, own_name, spec)


def _name_for_model(server: str, own_name: str) -> str:
    """``mcp__server__tool`` in characters that providers accept; long names end in a hash."""
    name = f"{REMOTE_PREFIX}{server}__{_NOT_IN_NAMES.sub('_', own_name)}"
    if len(name) <= _MAX_NAME_CHARS:
        return name
    digest = hashlib.sha256(own_name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: _MAX_NAME_CHARS - 9]}_{digest}"


def _parameters(given: JsonValue) -> JsonObject:
    """The schema of the arguments.

    Raises:
        ValueError: Providers would refuse it, and with it every request.
    """
    if given is None:
        return {"type": "object", "properties": {}}
    if not isinstance(given, dict) or given.get("type", "object") != "object":
        raise ValueError("its arguments are not a JSON schema of an object")
    properties = given.get("properties", {})
    if not isinstance(properties, dict):
        raise ValueError("its arguments have no properties")
    for name, inner in properties.items():
        if not _PROPERTY.fullmatch(name):
            raise ValueError(f"no provider accepts the argument name {name[:40]!r}")
        if not isinstance(inner, dict):
            raise ValueError(f"its argument {name} has no schema")
    kept = {key: value for key, value in given.items() if key not in _NOT_AT_THE_TOP}
    known: list[JsonValue] = [
        name for name in items_in(given.get("required")) if name in properties
    ]
    schema = _clean({**kept, "type": "object", "properties": properties, "required": known}, 0)
    if len(json.dumps(schema)) > _MAX_SCHEMA_CHARS:
        raise ValueError(f"the schema of its arguments is over {_MAX_SCHEMA_CHARS:,} characters")
    assert isinstance(schema, dict)
    return schema


def _clean(value: JsonValue, depth: int) -> JsonValue:
    """`value` without terminal control and invisible characters."""
    if depth > _MAX_DEPTH:
        raise ValueError("the schema of its arguments is nested too deeply")
    match value:
        case str():
            return display_text(value, _MAX_DESCRIPTION_CHARS, keep_lines=True)
        case list():
            return [_clean(inner, depth + 1) for inner in value]
        case dict():
            return {key: _clean(inner, depth + 1) for key, inner in value.items()}
        case _:
            return value


def _quote_name(item: JsonValue) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return repr(name[:40]) if isinstance(name, str) else ""


def argument_problems(arguments: JsonObject, spec: ToolSpec) -> Iterator[str]:
    """What is obviously wrong with a call; the server checks the rest."""
    properties = spec.parameters.get("properties")
    for name in items_in(spec.parameters.get("required")):
        if name not in arguments:
            yield f"{name} is missing"
    known = properties if isinstance(properties, dict) else {}
    if spec.parameters.get("additionalProperties") is False:
        yield from (f"{name} is not an argument" for name in arguments if name not in known)
