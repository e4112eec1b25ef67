"""The JSON Schema of what ``--output-format stream-json`` prints, made from the events."""

from collections.abc import Sequence
from typing import Any, Final, get_args

from pydantic import TypeAdapter

from agent_tui.events import AgentEvent
from agent_tui.headless.result import RunResult
from agent_tui.messages import JsonObject

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ABOUT: Final = (
    "One line of `agent-tui -p --output-format stream-json`. Fields that are null may be omitted. "
    "Later versions add types and fields, but never remove one or change its meaning."
)


def event_schema() -> JsonObject:
    """The schema of one line: any event, or the result, told apart by ``type``."""
    kinds: tuple[type, ...] = (*get_args(AgentEvent), RunResult)
    schemas, shared = TypeAdapter.json_schemas(
        [(kind, "serialization", TypeAdapter(kind)) for kind in kinds]
    )
    definitions = shared.get("$defs", {})
    names = [_line_name(kind) for kind in kinds]
    for kind, name in zip(kinds, names, strict=True):
        definition = _resolved(schemas[kind, "serialization"], definitions)
        definitions[name] = _with_type(definition, name)
    for definition in definitions.values():
        _loosen(definition)
    return {
        "$schema": _DIALECT,
        "title": "agent-tui events",
        "description": _ABOUT,
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in names],
        "$defs": dict(sorted(definitions.items())),
    }


def _line_name(kind: type) -> str:
    return "result" if kind is RunResult else kind.__name__


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A schema that stands for itself: a reference to a definition is followed."""
    reference = schema.get("$ref", "")
    return definitions.pop(reference.rpartition("/")[2]) if reference else schema


def _with_type(definition: dict[str, Any], name: str) -> dict[str, Any]:
    """With the ``type`` that begins the line."""
    others = {key: of for key, of in definition.get("properties", {}).items() if key != "type"}
    required = [key for key in definition.get("required", ()) if key != "type"]
    return {
        **definition,
        "properties": {"type": {"const": name}, **others},
        "required": ["type", *required],
    }


def _loosen(definition: dict[str, Any]) -> None:
    """Require no field that is left out when it is null, and say nothing of further ones."""
    definition.pop("additionalProperties", None)
    properties = definition.get("properties", {})
    required: Sequence[str] = definition.get("required", ())
    kept = [name for name in required if not _may_be_null(properties.get(name, {}))]
    if kept:
        definition["required"] = kept
    else:
        definition.pop("required", None)


def _may_be_null(schema: dict[str, Any]) -> bool:
    return any(each.get("type") == "null" for each in schema.get("anyOf", ()))
