"""Files, environment and flags merged into one frozen value, with where each setting came from.

A wrong key or value never stops the program: it is left out and reported as a
`SettingProblem` naming file, line, key and what is allowed.
"""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

from pydantic import JsonValue, ValidationError

from agent_tui.config.keys import SettingKey, join_key, key_lines, line_of, parse_key
from agent_tui.config.project import refusals
from agent_tui.config.schema import Settings
from agent_tui.config.specs import section_of, setting_specs, setting_variables, unknown_variables
from agent_tui.messages import JsonObject
from agent_tui.regular_files import read_regular_file
from agent_tui.safe_paths import is_link

Layer: TypeAlias = Literal["default", "own file", "project file", "environment", "command line"]

SCHEMA_KEY: Final = "$schema"
"""A key of ``config.toml`` that names its JSON Schema. It is not a setting."""


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
    elsewhere = [spec.name for spec in setting_specs(Settings()) if spec.key[-1] == key[-1]]
    if elsewhere:
        return f"no such setting; did you mean {' or '.join(elsewhere)}?"
    allowed = list(section_of(key).model_fields)
    near = difflib.get_close_matches(key[-1], allowed, n=1)
    if near:
        return f"no such setting; did you mean {near[0]}?"
    return "no such setting; allowed: " + ", ".join(allowed)


def _explain(kind: str, message: str, key: SettingKey) -> str:
    return (
        unknown_setting(key) if kind == "extra_forbidden" else message.removeprefix("Value error, ")
    )


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a setting.

    Attributes:
        layer: The later in `Layer`, the stronger.
        source: The file, the variable or the option; empty for a default.
        line: The line in the file, from 1; 0 if there is none.
    """

    layer: Layer
    source: str = ""
    line: int = 0

    def __str__(self) -> str:
        if not self.source:
            return self.layer
        return f"{self.source}:{self.line}" if self.line else self.source


DEFAULT = Origin("default")


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """A setting that was ignored, or a whole file if `key` is empty.

    `line` is 0 if there is none (environment, flags). `is_of_project`: a project's file sets it.
    """

    source: str
    line: int
    key: str
    problem: str
    is_of_project: bool = False

    @property
    def place(self) -> str:
        """The source and the name of the setting."""
        where = f"{self.source}:{self.line}" if self.line else self.source
        return f"{where}: {self.key}" if self.key else where

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"

    @property
    def notice(self) -> str:
        """The notice for the user."""
        what = "Setting ignored" if self.key else "File ignored"
        return f"{what}: {self}"


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings in force, the ignored ones, and the sources of all.

    `origins` maps each setting that is set anywhere to all its sources, the strongest last.
    """

    settings: Settings
    problems: tuple[SettingProblem, ...]
    origins: Mapping[SettingKey, tuple[Origin, ...]] = field(
        default_factory=dict[SettingKey, tuple[Origin, ...]]
    )

    def origins_of(self, key: SettingKey) -> tuple[Origin, ...]:
        """All sources of `key` or a part of it, the strongest last; at least `DEFAULT`."""
        found = [
            origin
            for other, origins in self.origins.items()
            if other[: len(key)] == key
            for origin in origins
        ]
        return tuple(found) or (DEFAULT,)

    def origin(self, key: SettingKey) -> Origin:
        """The source of the value of `key` that is in force."""
        return self.origins_of(key)[-1]


def load_settings(
    user_file: Path,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, JsonValue] | None = None,
    project_files: Sequence[Path] = (),
) -> LoadedSettings:
    """Merge defaults, files, ``AGENT_TUI_*`` variables and `flags` (strongest last).

    Args:
        user_file: ``config.toml``; may be missing.
        environ: ``AGENT_TUI_MODEL`` sets ``model``, ``AGENT_TUI_COMPACTION__AUTO`` sets
            ``compaction.auto``.
        flags: Values from the command line, by setting name; ``None`` values are left out.
        project_files: Settings of a trusted project, the most general first. They override
            `user_file` but not the environment, and may only set what `refusals` allows.
    """
    layers = _SettingsLayers()
    layers.add_file(user_file)
    for file in project_files:
        layers.add_project_file(file)
    layers.add_environment(environ)
    given: JsonObject = {k: v for k, v in (flags or {}).items() if v is not None}
    layers.add_flags(given)
    layers.leave_out_clashing_keys()
    settings = Settings.model_validate(layers.values)
    return LoadedSettings(settings, tuple(layers.problems), layers.origins)


class _SettingsLayers:
    """The layers of settings merged so far; the weakest is added first."""

    def __init__(self) -> None:
        self.values: JsonObject = {}
        self.problems: list[SettingProblem] = []
        self.origins: dict[SettingKey, tuple[Origin, ...]] = {}

    def add_file(self, path: Path) -> None:
        values, lines = self._read(path)
        self._add(values, lambda key: Origin("own file", str(path), line_of(lines, key)))

    def add_project_file(self, path: Path) -> None:
        """Add the values that the project's file may set; its rules are added to the others."""
        first = len(self.problems)
        values, lines = self._read(path)
        own = Settings.model_validate(self.values)
        for key, why in tuple(refusals(values, own)):
            self._report(str(path), [InvalidSetting(key, why)], lines)
            values = without(values, key)
        self.problems[first:] = [replace(one, is_of_project=True) for one in self.problems[first:]]
        added = Settings.model_validate(values).permissions
        rules: JsonObject = {
            "ask": [*own.permissions.ask, *added.ask],
            "deny": [*own.permissions.deny, *added.deny],
        }
        self._add(values, lambda key: Origin("project file", str(path), line_of(lines, key)))
        self.values = merge(self.values, {"permissions": rules})

    def add_environment(self, environ: Mapping[str, str]) -> None:
        names = {parse_key(name): variable for variable, name in setting_variables().items()}
        values: JsonObject = {}
        kinds = {spec.variable: spec.kind for spec in setting_specs(Settings())}
        for key, variable in names.items():
            if (text := environ.get(variable)) is not None:
                value = split_list(text) if kinds[variable] == "list" else text
                if key[0] == "permissions" and isinstance(value, list):  # no deny rule is lost
                    value = [*self._rules(key[-1]), *value]
                values = merge(values, nest(key, value))
        for name, near in unknown_variables(environ):
            meant = f"did you mean {near}?" if near else "no such setting"
            self.problems.append(SettingProblem("environment", 0, name, meant))
        values = self._check("environment", values, {})
        self._add(values, lambda key: Origin("environment", names[key]))

    def _rules(self, decision: str) -> list[JsonValue]:
        rules = self.values.get("permissions")
        present = rules.get(decision) if isinstance(rules, dict) else None
        return present if isinstance(present, list) else []

    def add_flags(self, flags: JsonObject) -> None:
        values = self._check("command line", flags, {})
        self._add(values, lambda key: Origin("command line", f"--{key[-1].replace('_', '-')}"))

    def leave_out_clashing_keys(self) -> None:
        """Drop ``[keys]`` that conflict; all layers are judged together."""
        while clash := next(Settings.model_validate(self.values).keys.key_map.clashes(), None):
            name, why = clash
            key = ("keys", name)
            origin = self.origins.pop(key)[-1]
            self.values = without(self.values, key)
            self.problems.append(
                SettingProblem(str(origin.source), origin.line, join_key(key), why)
            )

    def _read(self, path: Path) -> tuple[JsonObject, Mapping[SettingKey, int]]:
        source = str(path)
        try:
            text = read_regular_file(path).decode("utf-8-sig")
            values = tomllib.loads(text)
        except (FileNotFoundError, NotADirectoryError):
            if is_link(path):
                problem = SettingProblem(source, 0, "", "the link leads to no file")
                self.problems.append(problem)
            return {}, {}
        except OSError as error:
            self.problems.append(SettingProblem(source, 0, "", f"cannot be read: {error.strerror}"))
            return {}, {}
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            found = re.search(r"line (\d+)", str(error))
            line = int(found[1]) if found else 0
            self.problems.append(SettingProblem(source, line, "", f"not valid TOML: {error}"))
            return {}, {}
        lines = key_lines(text)
        return self._check(source, values, lines), lines

    def _check(
        self, source: str, values: JsonObject, lines: Mapping[SettingKey, int]
    ) -> JsonObject:
        good, invalid = keep_valid(values)
        self._report(source, invalid, lines)
        return good

    def _report(
        self, source: str, invalid: Iterable[InvalidSetting], lines: Mapping[SettingKey, int]
    ) -> None:
        for one in invalid:
            line = line_of(lines, one.key)
            self.problems.append(SettingProblem(source, line, ".".join(one.key), one.why))

    def _add(self, values: JsonObject, origin_of: Callable[[SettingKey], Origin]) -> None:
        """Merge `values` over those so far, and record their source."""
        self.values = merge(self.values, values)
        for key in leaves(values):
            self.origins[key] = (*self.origins.get(key, ()), origin_of(key))


def split_list(text: str) -> JsonValue:
    """The list in a variable: JSON, or separated by commas that are not inside brackets."""
    if text.lstrip().startswith("["):
        with suppress(ValueError):
            return cast(JsonValue, json.loads(text))
    pieces = re.split(r",(?![^(]*\))", text)
    return [stripped for piece in pieces if (stripped := piece.strip())]


def leaves(values: JsonObject, prefix: SettingKey = ()) -> Iterator[SettingKey]:
    """The keys of all values that are not tables."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, (*prefix, name))
        else:
            yield (*prefix, name)


def nest(key: SettingKey, value: JsonValue) -> JsonObject:
    """A table that sets only `key` to `value`."""
    for part in reversed(key):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def merge(base: JsonObject, over: JsonObject) -> JsonObject:
    """`base` updated with `over`, table by table."""
    merged = dict(base)
    for key, value in over.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[key] = merge(before, value)
        else:
            merged[key] = value
    return merged
