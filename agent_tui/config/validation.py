"""Validation that drops invalid settings and says why, instead of refusing the whole file."""

import difflib
from dataclasses import dataclass

from pydantic import ValidationError

from agent_tui.config.json_schema import SCHEMA_KEY
from agent_tui.config.keys import SettingKey
from agent_tui.config.schema import Settings
from agent_tui.config.specs import section_of
from agent_tui.messages import JsonObject


@dataclass(frozen=True, slots=True)
class InvalidSetting:
    """A setting that cannot be used, and what is allowed instead.

    `by_rule`: its type is right, but its value is refused.
    """

    key: SettingKey
    why: str
    by_rule: bool = False


def keep_valid(values: JsonObject) -> tuple[JsonObject, tuple[InvalidSetting, ...]]:
    """`values` without the invalid ones, and the invalid ones with reasons."""
    invalid: list[InvalidSetting] = []
    remaining = without(values, (SCHEMA_KEY,))
    while True:
        try:
            Settings.model_validate(remaining)
        except ValidationError as error:
            for detail in error.errors():
                key = tuple(str(part) for part in detail["loc"])
                kind = detail["type"]
                why = _explain(kind, detail["msg"], key)
                invalid.append(InvalidSetting(key, why, by_rule=kind == "value_error"))
                remaining = without(remaining, key)
            continue
        return remaining, tuple(invalid)


def without(values: JsonObject, key: SettingKey) -> JsonObject:
    """A copy of `values` without the deepest table entry that `key` names."""
    head, rest = key[0], key[1:]
    inner = values.get(head)
    if rest and isinstance(inner, dict):
        return {**values, head: without(inner, rest)}
    return {name: value for name, value in values.items() if name != head}


def unknown_setting(key: SettingKey) -> str:
    """The message about an unknown key: the likely setting, or all that exist."""
    allowed = list(section_of(key).model_fields)
    near = difflib.get_close_matches(key[-1], allowed, n=1)
    if near:
        return f"no such setting; did you mean {near[0]}?"
    return "no such setting; allowed: " + ", ".join(allowed)


def _explain(kind: str, message: str, key: SettingKey) -> str:
    return (
        unknown_setting(key) if kind == "extra_forbidden" else message.removeprefix("Value error, ")
    )
