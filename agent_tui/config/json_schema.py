"""The JSON Schema of ``config.toml``, which text editors use to complete and check it."""

from collections.abc import Mapping
from typing import Final, cast

from pydantic import JsonValue

from agent_tui.config.schema import Settings
from agent_tui.messages import JsonObject

SCHEMA_URL: Final = "https://agent-tui.github.io/agent-tui/reference/config.schema.json"
"""Its address on the documentation site."""

SCHEMA_KEY: Final = "$schema"
"""A key of ``config.toml`` that names the schema. It is not a setting."""

_DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""The newest dialect that the common TOML editors know."""


def settings_schema() -> JsonObject:
    """The schema of the whole file. It has no references, because not every editor follows them."""
    made = Settings.model_json_schema()
    definitions = cast("Mapping[str, JsonObject]", made["$defs"])
    settings = {
        name: cast("dict[str, JsonObject]", _plain(setting, definitions))
        for name, setting in cast("Mapping[str, JsonValue]", made["properties"]).items()
    }
    for key in settings["keys"]["properties"].values():
        cast(JsonObject, key)["type"] = ["string", "array"]
    return {
        "$schema": _DIALECT,
        "$id": SCHEMA_URL,
        "title": "agent-tui config.toml",
        "type": "object",
        "properties": {
            SCHEMA_KEY: {"description": "Address of this schema", "type": "string"},
            **cast(JsonObject, settings),
        },
        "additionalProperties": False,
    }


def _plain(schema: JsonValue, definitions: Mapping[str, JsonObject]) -> JsonValue:
    """`schema` with references replaced by definitions, and without null as an option.

    TOML has no null. Titles and docstrings of definitions are left out, because they name code.
    """
    if isinstance(schema, list):
        return [_plain(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    own = {key: one for key, one in schema.items() if key not in ("$ref", "anyOf", "title")}
    if (reference := schema.get("$ref")) is not None:
        definition = definitions[str(reference).rpartition("/")[2]]
        inherited = {key: one for key, one in definition.items() if key != "description"}
        own.pop("default", None)  # a whole section
        own = {**inherited, **own}
        own.pop("title", None)
    for choice in cast("list[JsonObject]", schema.get("anyOf", ())):
        if choice.get("type") != "null":
            own = {**own, **choice}
            own.pop("default", None)
    if isinstance(known := own.pop("examples", None), list):  # other values are allowed, too
        own["anyOf"] = cast(JsonValue, [{"enum": known}, {"type": "string"}])
    properties = own.pop("properties", None)
    plain = {key: _plain(one, definitions) for key, one in own.items()}
    if isinstance(properties, dict):  # their names are not words of the schema
        plain["properties"] = {name: _plain(one, definitions) for name, one in properties.items()}
    return plain
