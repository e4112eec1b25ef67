"""A server's question to the user during a call: a form with a few flat fields."""

import math
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.tools.mcp.json_rpc import display_text, items_in

FieldKind: TypeAlias = Literal["text", "number", "integer", "yes or no", "one of", "some of"]

DECLINED: Final[JsonObject] = {"action": "decline"}
CANCELLED: Final[JsonObject] = {"action": "cancel"}

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
_YES: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of the form.

    Args:
        name: The server's name for it.
        title: Its label for the user.
        kind: What it accepts.
        about: A description; may be empty.
        choices: For ``one of`` and ``some of``: values, with a label for each.
        present: The value that the server suggests; empty for none.
        is_required: Whether it must be filled.
        least: The least number or length; None for any.
        most: The greatest number or length; None for any.
    """

    name: str
    title: str
    kind: FieldKind
    about: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    present: str = ""
    is_required: bool = False
    least: float | None = None
    most: float | None = None

    def value(self, typed: str) -> JsonValue:
        """The text the user typed, converted to the value the server expects.

        Raises:
            ValueError: It is not valid; says what is accepted.
        """
        match self.kind:
            case "text":
                self._check(len(typed), "characters")
                return typed
            case "number" | "integer":
                return self._number(typed)
            case "yes or no":
                if typed.casefold() not in _YES:
                    raise ValueError("yes or no")
                return _YES[typed.casefold()]
            case "one of":
                return self._choose(typed)
            case "some of":
                words = [word.strip() for word in typed.split(",") if word.strip()]
                self._check(len(words), "of them")
                return [self._choose(word) for word in words]

    def _number(self, typed: str) -> float | int:
        try:
            number = int(typed) if self.kind == "integer" else float(typed)
        except ValueError as error:
            whole = "a whole number" if self.kind == "integer" else "a number"
            raise ValueError(whole) from error
        if not math.isfinite(number):
            raise ValueError("a number")
        self._check(number, "")
        return number

    def _choose(self, typed: str) -> str:
        for value, label in self.choices:
            if typed.casefold() in (value.casefold(), label.casefold()):
                return value
        raise ValueError(f"one of {', '.join(label for _, label in self.choices)}")

    def _check(self, size: float, unit: str) -> None:
        is_less = self.least is not None and size < self.least
        if is_less or (self.most is not None and size > self.most):
            low = f"at least {self.least:g}" if self.least is not None else ""
            high = f"at most {self.most:g}" if self.most is not None else ""
            raise ValueError(f"{' and '.join(filter(None, (low, high)))} {unit}".rstrip())


@dataclass(frozen=True, slots=True)
class Elicitation:
    """A form that `server` wants filled; if it wants a page opened, only `url` is set."""

    server: str
    message: str
    fields: tuple[FormField, ...] = ()
    url: str = ""


FormFiller: TypeAlias = Callable[[Elicitation], Awaitable[JsonObject]]
"""Has the user fill a form; returns the complete answer for the server."""


async def decline(_asked: Elicitation) -> JsonObject:
    """A `FormFiller` for when nobody can answer."""
    return DECLINED


def accept_form(values: JsonObject) -> JsonObject:
    """The answer to a form filled with `values`."""
    return {"action": "accept", "content": values}


def show_value(value: JsonValue) -> str:
    """A value of a field as the user reads and types it."""
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(show_value, value))
        case _:
            return str(value)


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
