"""The result of a run as JSON, and the JSON Schema of the lines of `stream-json`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from pydantic import JsonValue, TypeAdapter

from agent_tui.events import AgentEvent, FeatureEvent, TurnOutcome
from agent_tui.feature import load_object, own_features
from agent_tui.messages import JsonObject


@dataclass(frozen=True, slots=True)
class ContextResult:
    """Context used, in tokens; `is_estimate` if the provider sent no counts."""

    used: int
    window: int
    is_estimate: bool


@dataclass(frozen=True, slots=True)
class TokensResult:
    """Tokens that the session used."""

    input: int
    output: int


RunOutcome: TypeAlias = TurnOutcome | Literal["timeout"]


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A tool call that was refused; `reason` names the rule, mode, hook or missing approval."""

    tool: str
    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """How the run ended, and its result.

    `result` is the text of the last reply. `error` says why `outcome` is not ``done``;
    ``timeout`` means that ``--max-time`` was reached. `refused_calls` did not run, or are
    hosts that commands were not let reach (``network``). `exit_code` is
    the program's. `session_path` is null if the session is not saved, and `cost_usd` if a price
    is unknown. `stopped_jobs` are background commands that ended with the program.
    `structured_output` is the answer to ``--json-schema``, else null.
    """

    result: str
    outcome: RunOutcome
    error: str
    exit_code: int
    session_id: str
    session_path: str | None
    model: str
    context: ContextResult
    tokens: TokensResult
    cost_usd: float | None
    stopped_jobs: tuple[str, ...]
    refused_calls: tuple[RefusedCall, ...] = ()
    structured_output: JsonValue = None
    type: Literal["result"] = field(default="result", kw_only=True)


_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ABOUT: Final = (
    "One line of `agent-tui -p --output-format stream-json`. Fields that are null may be omitted. "
    "Later versions add types and fields, but never remove one or change its meaning."
)


def event_types() -> tuple[type, ...]:
    """The class of every event, those of features in place of `FeatureEvent`."""
    names = (name for feature in own_features() for name in feature.events)
    brought = tuple(cast(type, load_object(name)) for name in names)
    kinds = cast("tuple[type, ...]", get_args(AgentEvent))
    at = kinds.index(FeatureEvent)
    return (*kinds[:at], *brought, *kinds[at + 1 :])


def event_schema() -> JsonObject:
    """The schema of one line: any event, or the result, told apart by ``type``."""
    kinds: tuple[type, ...] = (*event_types(), RunResult)
    schemas, shared = TypeAdapter.json_schemas(
        [(kind, "serialization", TypeAdapter(kind)) for kind in kinds]
    )
    definitions = shared.get("$defs", {})
    names = [_line_name(kind) for kind in kinds]
    for kind, name in zip(kinds, names, strict=True):
        definition = _resolve(schemas[kind, "serialization"], definitions)
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


def _resolve(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema itself; a reference to a definition is resolved."""
    reference = schema.get("$ref", "")
    return definitions.pop(reference.rpartition("/")[2]) if reference else schema


def _with_type(definition: dict[str, Any], name: str) -> dict[str, Any]:
    """`definition` with the ``type`` that begins the line."""
    others = {key: of for key, of in definition.get("properties", {}).items() if key != "type"}
    required = [key for key in definition.get("required", ()) if key != "type"]
    return {
        **definition,
        "properties": {"type": {"const": name}, **others},
        "required": ["type", *required],
    }


def _loosen(definition: dict[str, Any]) -> None:
    """Require no field that is omitted when null, and leave further fields open."""
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
