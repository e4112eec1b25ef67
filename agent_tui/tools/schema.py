"""Converts a tool's argument model to a compact JSON schema, and errors to advice."""

import json
from functools import cache
from typing import cast

from pydantic import BaseModel, JsonValue, ValidationError

from agent_tui.messages import JsonObject

_KEPT_KEYS = ("type", "description", "items", "enum", "properties", "required")


@cache  # pydantic takes a millisecond to describe a model
def compact_schema(arguments_type: type[BaseModel]) -> JsonObject:
    """The JSON schema of a model: references resolved; no titles, defaults and limits."""
    schema = cast(JsonObject, arguments_type.model_json_schema())
    definitions = schema.get("$defs")
    return _compact(schema, definitions if isinstance(definitions, dict) else {})


def bare_schema(schema: JsonObject) -> JsonObject:
    """A compact schema without the descriptions of its arguments."""
    bare: JsonObject = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            bare[key] = {
                name: bare_schema(inner) for name, inner in value.items() if isinstance(inner, dict)
            }
        elif key == "items" and isinstance(value, dict):
            bare[key] = bare_schema(value)
        elif key != "description":
            bare[key] = value
    return bare


def coerce_arguments(arguments: JsonObject, arguments_type: type[BaseModel]) -> JsonObject:
    """`arguments` with small, unambiguous mistakes of models corrected.

    JSON text instead of an object or list, and null for "not given".
    """
    return _coerce_object(arguments, compact_schema(arguments_type))


_OWN_WORDS = {
    "extra_forbidden": "is not an argument",
    "missing": "is missing",
    "string_unicode": "contains half of a surrogate pair, which is not a character",
}
"""Our words for some mistakes, in place of pydantic's."""

_WRONG_VALUES = ("literal_error", "enum")


def explain_invalid(error: ValidationError, arguments_type: type[BaseModel]) -> str:
    """Which arguments are wrong and what is expected, one line each."""
    lines: list[str] = []
    for detail in error.errors(include_url=False, include_context=False):
        where = ".".join(str(part) for part in detail["loc"]) or "arguments"
        message = _OWN_WORDS.get(detail["type"]) or detail["msg"]
        if detail["type"] in _WRONG_VALUES and len(detail["loc"]) == 1:
            message = "is not one of its values"  # which the signature lists
        lines.append(f"{where} {message}" if message.startswith("is ") else f"{where}: {message}")
    return "\n".join([*lines, f"Expected: {_signature(compact_schema(arguments_type))}"])


def _compact(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = definitions.get(reference.rpartition("/")[2])
        return _compact(target, definitions) if isinstance(target, dict) else {}
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        real = [c for c in choices if isinstance(c, dict) and c.get("type") != "null"]
        outer = {key: value for key, value in schema.items() if key != "anyOf"}
        return _compact({**real[0], **outer}, definitions)
    compact: JsonObject = {key: schema[key] for key in _KEPT_KEYS if key in schema}
    if "properties" not in schema:
        items = schema.get("items")
        if isinstance(items, dict):
            compact["items"] = _compact(items, definitions)
        return compact
    compact.pop("description", None)
    properties = schema["properties"]
    assert isinstance(properties, dict)
    compact["properties"] = {
        name: _compact(value, definitions)
        for name, value in properties.items()
        if isinstance(value, dict)
    }
    return compact


def _parse(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _coerce_object(given: JsonObject, schema: JsonObject) -> JsonObject:
    properties = schema.get("properties")
    required = schema.get("required")
    if not isinstance(properties, dict):
        return given
    needed = required if isinstance(required, list) else []
    mended: JsonObject = {}
    for key, value in given.items():
        if value is None and key not in needed:
            continue
        expected = properties.get(key)
        mended[key] = _coerce(value, expected) if isinstance(expected, dict) else value
    return mended


def _coerce(value: JsonValue, schema: JsonObject) -> JsonValue:
    if isinstance(value, str) and schema.get("type") in ("array", "object"):
        value = _parse(value)
    items = schema.get("items")
    if schema.get("type") == "array" and isinstance(items, dict):
        listed = [value] if isinstance(value, dict) else value
        if isinstance(listed, list):
            return [_coerce(item, items) for item in listed]
    if isinstance(value, dict):
        return _coerce_object(value, schema)
    return value


def _signature(schema: JsonObject) -> str:
    """The arguments as text: ``path: string, offset?: integer``."""
    properties, required = schema.get("properties"), schema.get("required")
    assert isinstance(properties, dict)
    needed = required if isinstance(required, list) else []
    parts: list[str] = []
    for name, expected in properties.items():
        parts.append(f"{name}{'' if name in needed else '?'}: {_kind_of(expected)}")
    return ", ".join(parts)


def _kind_of(expected: JsonValue) -> str:
    """The values or the type that a schema allows."""
    if not isinstance(expected, dict):
        return "any"
    if isinstance(values := expected.get("enum"), list):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    return str(expected.get("type") or "any")
