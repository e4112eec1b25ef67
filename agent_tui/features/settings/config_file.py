"""What is made from the settings: the JSON Schema of ``config.toml``, and a new file's text.

Text editors use the schema to complete and check the file. The text lists every setting with its
description, commented out.
"""

import textwrap
from collections.abc import Mapping
from itertools import groupby
from typing import Final, cast

from pydantic import JsonValue

from agent_tui.config.keys import join_key
from agent_tui.config.loading import SCHEMA_KEY
from agent_tui.config.schema import Settings
from agent_tui.config.specs import section_description, setting_specs
from agent_tui.messages import JsonObject

SCHEMA_URL: Final = "https://agent-tui.github.io/agent-tui/reference/config.schema.json"
"""Its address on the documentation site."""

_DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""The newest dialect that the common TOML editors know."""

_HEAD = f"""\
#:schema {SCHEMA_URL}
# Settings of agent-tui, each with its default. To change one, remove its # and edit the value.
# "agent-tui config show" shows the values in use and where each comes from.
"""
_MODELS = """\
#[models."openai/qwen3"]
#window = 32768
"""
_PLUGIN = """\
#[plugin.timer]
#minutes = 25
"""
_HOOKS = """\
#[[hooks.PostToolUse]]
#matcher = "Edit|Write"
#command = "ruff check --quiet >&2 || exit 2"
"""
_COLUMNS = 96


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


def template_text() -> str:
    """A file that changes nothing and lists all settings."""
    pieces = [_HEAD]
    for section, specs in groupby(setting_specs(Settings()), key=lambda spec: spec.section):
        if section:
            about = section_description(section)
            pieces.append(f"{_comment(about)}[{join_key(section)}]\n")
        for spec in specs:
            shown = toml_text(spec.default)
            about = _comment(spec.description)
            choices = _comment(f"One of: {spec.allowed}") if spec.kind == "choice" else ""
            pieces.append(f"{about}{choices}#{spec.key[-1]} = {shown}\n")
    for name, example in (("models", _MODELS), ("hooks", _HOOKS), ("plugin", _PLUGIN)):
        pieces.append(_comment(section_description((name,))) + example)
    return "\n".join(pieces)


def toml_text(value: JsonValue) -> str:
    """A value in TOML syntax; empty for None."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return f"[{', '.join(map(toml_text, value))}]"
        case dict():
            inner = ", ".join(
                f"{join_key((key,))} = {toml_text(one)}" for key, one in value.items()
            )
            return f"{{ {inner} }}" if inner else "{}"
        case str():
            return _basic_string(value)
        case _:
            return str(value)


def _basic_string(text: str) -> str:
    """A TOML string on one line; control characters are escaped."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    letters = (
        escapes.get(letter) or (letter if letter.isprintable() else f"\\U{ord(letter):08X}")
        for letter in text
    )
    return f'"{"".join(letters)}"'


def _comment(text: str) -> str:
    lines = textwrap.wrap(text, _COLUMNS - 2, break_long_words=False)
    return "".join(f"# {line}\n" for line in lines)
