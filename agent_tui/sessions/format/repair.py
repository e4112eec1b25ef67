"""Repairing values of a damaged or foreign file: wrong fields left out, depth bounded."""

from collections.abc import Callable, Iterable, Sequence
from operator import is_not
from typing import TypeAlias, TypeVar, cast

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from agent_tui.messages import JsonObject, Stored

DEPTH = 100
"""Levels of a line that are written and read; pydantic's JSON reader takes 200 at most."""

TOO_DEEP_TEXT = "(nested too deeply)"
"""What stands in a line in place of a list or object below `DEPTH`."""

_ROUNDS = 40
"""Validations before a value is given up: leaving out one fault can show another."""
_MOST_FAULTS = 10_000
"""Faults of one value before it is given up: each costs a kilobyte to be told of."""
_NAMED_FAULTS = 20

ValueT = TypeVar("ValueT")
StoredT = TypeVar("StoredT", bound=Stored)
_Place: TypeAlias = tuple[str | int, ...]
"""The keys that lead to a part of a value."""


def validate_repaired(
    validate: Callable[[JsonValue], ValueT], data: JsonObject, notes: list[str]
) -> ValueT | None:
    """Validate `data`, leaving out what is wrong in it; None if nothing usable is left.

    Args:
        validate: Raises `ValidationError`.
        data: Not changed.
        notes: Gets a line for each thing left out, unless the answer is None.
    """
    repaired: JsonValue = data
    faults: dict[_Place, str] = {}
    for _ in range(_ROUNDS):
        try:
            value = validate(repaired)
        except ValidationError as error:
            found = _faults(repaired, error)
            if not found:
                return None
            repaired = _without(repaired, list(found))
            faults |= found
            continue
        named = list(faults.items())[:_NAMED_FAULTS]
        notes += [f"{'.'.join(map(str, where))} left out ({reason})" for where, reason in named]
        if len(faults) > len(named):
            notes.append(f"{len(faults) - len(named):,} more fields left out")
        return value
    return None


def within_depth(value: JsonObject, room: int = DEPTH) -> JsonObject:
    """`value` with lists and objects below `room` levels replaced by `TOO_DEEP_TEXT`.

    The same object when there are none.
    """
    return cast(JsonObject, _bounded(value, room))


def stored_within_depth(value: StoredT) -> StoredT:
    """`within_depth` for what is about to be written."""
    return cast(StoredT, _bounded(value, DEPTH))


def _bounded(value: object, room: int) -> object:
    match value:
        case Stored():
            return _bounded_model(value, room)
        case dict() | list() | tuple() if room <= 0:
            return TOO_DEEP_TEXT
        case dict():
            fields = cast("dict[str, object]", value)
            changed = _changes(fields.items(), room)
            return {**fields, **changed} if changed else fields
        case list() | tuple():
            items = cast("list[object] | tuple[object, ...]", value)
            new = [_bounded(item, room - 1) for item in items]
            if not any(map(is_not, new, items)):
                return items
            return new if isinstance(items, list) else tuple(new)
        case _:
            return value


def _bounded_model(value: Stored, room: int) -> Stored:
    changed = _changes(value, room)
    return value.model_copy(update=changed) if changed else value


def _changes(fields: Iterable[tuple[str, object]], room: int) -> dict[str, object]:
    return {
        name: after
        for name, before in fields
        if (after := _bounded(before, room - 1)) is not before
    }


def _faults(data: JsonValue, error: ValidationError) -> dict[_Place, str]:
    """Where the innermost faults of `data` are, by reason; none where it cannot be repaired."""
    if error.error_count() > _MOST_FAULTS:
        return {}
    details = error.errors(include_url=False, include_input=False)
    found = {_place(data, detail): detail["msg"].lower() for detail in details}
    around = {where[:length] for where in found for length in range(len(where))}
    return {where: reason for where, reason in found.items() if where and where not in around}


def _place(data: JsonValue, detail: ErrorDetails) -> _Place:
    """The keys that really lead to the fault; pydantic also names union members on the way."""
    where: list[str | int] = []
    for part in detail["loc"]:
        match data, part:
            case dict(), str() if part in data:
                data = data[part]
                where.append(part)
            case list(), int() if part < len(data):
                data = data[part]
                where.append(part)
            case _:
                pass
    return tuple(where)


def _without(data: JsonValue, places: Sequence[_Place]) -> JsonValue:
    """A copy of `data` without the items that `places` lead to."""
    inner: dict[str | int, list[_Place]] = {}
    for place in places:
        inner.setdefault(place[0], []).append(place[1:])

    def kept(key: str | int) -> bool:
        return () not in inner.get(key, ())

    def part(key: str | int, value: JsonValue) -> JsonValue:
        return _without(value, inner[key]) if key in inner else value

    if isinstance(data, dict):
        return {key: part(key, value) for key, value in data.items() if kept(key)}
    assert isinstance(data, list)
    return [part(at, value) for at, value in enumerate(data) if kept(at)]
