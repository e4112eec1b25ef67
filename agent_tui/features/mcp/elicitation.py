"""Reads a server's question to the user during a call, and tells the model the answer."""

from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from agent_tui.features.mcp.json_rpc import display_text, items_in
from agent_tui.messages import JsonObject
from agent_tui.tools.form import DECLINED, Elicitation, FieldKind, FormField, show_value

_MAX_FIELDS = 20
_MAX_CHOICES = 100
_MAX_MESSAGE_CHARS = 1_000
_MAX_WORDS = 200
_KINDS: Final[dict[str, FieldKind]] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "yes or no",
    "array": "some of",
}


async def decline(_asked: Elicitation) -> JsonObject:
    """A `FormFiller` for when nobody can answer."""
    return DECLINED


def tell_answer(asked: Elicitation, answer: JsonObject) -> str:
    """What the user answered, for the model: the question, and each field; empty if declined."""
    values = answer.get("content")
    if answer.get("action") != "accept" or not isinstance(values, dict):
        return ""
    titles = {field.name: field.title for field in asked.fields}
    told = [f"{titles.get(name, name)}: {show_value(value)}" for name, value in values.items()]
    return f"{asked.message} -> {'; '.join(told)}"


def elicitation(server: str, params: JsonObject) -> Elicitation:
    """Parse the parameters of ``elicitation/create``.

    Raises:
        ValueError: The question cannot be shown.
    """
    message = display_text(params.get("message"), _MAX_MESSAGE_CHARS)
    url = params.get("url")
    if isinstance(url, str):
        return Elicitation(server, message, url=display_text(url, 2_000))
    match params.get("requestedSchema"):
        case {"properties": dict(properties), **rest} if len(properties) <= _MAX_FIELDS:
            names = items_in(rest.get("required"))
            fields = tuple(
                _field(name, given, is_required=name in names) for name, given in properties.items()
            )
            return Elicitation(server, message, fields)
        case _:
            raise ValueError("its form has no fields, or too many")


def _field(name: str, given: JsonValue, *, is_required: bool) -> FormField:
    if not isinstance(given, dict) or not isinstance(kind := given.get("type"), str):
        raise ValueError(f"its field {name[:40]!r} has no type")
    if kind not in _KINDS:
        raise ValueError(f"its field {name[:40]!r} has the unsupported type {kind[:40]}")
    items = given.get("items")
    choices = tuple(_choices(items if isinstance(items, dict) else given))[:_MAX_CHOICES]
    own = _KINDS[kind]
    if own == "some of" and not choices:
        raise ValueError(f"its field {name[:40]!r} has no choices")
    return FormField(
        name=name,
        title=display_text(given.get("title"), _MAX_WORDS) or display_text(name, _MAX_WORDS),
        kind="one of" if own == "text" and choices else own,
        about=display_text(given.get("description"), _MAX_WORDS),
        choices=choices,
        present=_present(given.get("default")),
        is_required=is_required,
        least=_limit(given, "minimum", "minLength", "minItems"),
        most=_limit(given, "maximum", "maxLength", "maxItems"),
    )


def _choices(given: JsonObject) -> Iterator[tuple[str, str]]:
    values, names = given.get("enum"), given.get("enumNames")
    if isinstance(values, list):
        labels = names if isinstance(names, list) and len(names) == len(values) else values
        for value, label in zip(values, labels, strict=True):
            if isinstance(value, str):
                yield value, display_text(str(label), _MAX_WORDS)
    for each in items_in(given.get("oneOf") or given.get("anyOf")):
        match each:
            case {"const": str(value)}:
                yield (
                    value,
                    display_text(each.get("title"), _MAX_WORDS) or display_text(value, _MAX_WORDS),
                )
            case _:
                pass


def _present(value: JsonValue) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(each for each in value if isinstance(each, str))
        case str() | int() | float():
            return display_text(str(value), _MAX_MESSAGE_CHARS)
        case _:
            return ""


def _limit(given: JsonObject, *names: str) -> float | None:
    for name in names:
        value = given.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
    return None
