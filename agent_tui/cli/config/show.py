"""``agent-tui config show``: the settings in force and where each is set."""

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from pydantic import JsonValue

from agent_tui.config import LoadedSettings, Origin, Settings
from agent_tui.config.json_schema import toml_text
from agent_tui.config.keys import SettingKey, join_key
from agent_tui.config.specs import SettingSpec, mask, setting_specs, value_at
from agent_tui.messages import JsonObject
from agent_tui.providers.keys import secret_values
from agent_tui.safe_text import safe_text
from agent_tui.secret_text import mask_secrets

SHOW_JSON = """\
With --json:
  {"settings": [{"key", "value", "default", "origin", "layer", "also",
    "description", "allowed", "variable"}],
   "problems": [{"source", "line", "key", "problem"}]}
"origin" is the file and line, the variable or the option that sets the value.
"layer" is one of default, own file, project file, environment, command line.
"also" lists other origins: they add to a list, and are overridden otherwise.
"""

_WIDEST_VALUE = 44


def settings_under(loaded: LoadedSettings, name: SettingKey) -> tuple[SettingSpec, ...]:
    """The setting called `name`, all settings of that section, or all if `name` is empty."""
    specs = setting_specs(loaded.settings)
    return tuple(spec for spec in specs if spec.key[: len(name)] == name)


def settings_text(loaded: LoadedSettings, specs: Sequence[SettingSpec], folder: Path | None) -> str:
    """One TOML line for each of `specs`, followed by where it is set; problems come last."""
    secrets = secret_values(os.environ)
    lines: list[str] = []
    for section, group in groupby(specs, key=lambda spec: spec.section):
        if section:
            lines += ["", f"[{join_key(section)}]"] if lines else [f"[{join_key(section)}]"]
        for spec in group:
            assignment = f"{join_key(spec.key[-1:])} = {_shown_value(loaded.settings, spec)}"
            origins = _shown_origins(loaded, spec, folder)
            lines.append(f"{assignment.ljust(_WIDEST_VALUE)}  # {origins}")
    lines += _problem_lines(loaded, folder)
    return safe_text(mask_secrets("\n".join(lines), secrets)) + "\n"


def setting_text(loaded: LoadedSettings, spec: SettingSpec, folder: Path | None) -> str:
    """Everything about one setting, as text."""
    rows = [
        ("value", _shown_value(loaded.settings, spec)),
        ("from", _shown_origins(loaded, spec, folder)),
        ("default", toml_text(spec.default)),
        ("takes", spec.allowed),
        ("variable", spec.variable),
    ]
    lines = [f"{spec.name}: {spec.description}"]
    lines += [f"  {label:8}  {text}" for label, text in rows if text]
    key = spec.name
    lines += [f"{problem}" for problem in loaded.problems if problem.key == key or not problem.key]
    return safe_text(mask_secrets("\n".join(lines), secret_values(os.environ))) + "\n"


def settings_json(loaded: LoadedSettings, specs: Sequence[SettingSpec]) -> JsonObject:
    """`specs` as JSON, with a description of each setting."""
    secrets = secret_values(os.environ)

    def row(spec: SettingSpec) -> JsonObject:
        origins = loaded.origins_of(spec.key)
        return {
            "key": spec.name,
            "value": mask(value_at(loaded.settings, spec.key), secrets),
            "default": spec.default,
            "origin": str(origins[-1]),
            "layer": origins[-1].layer,
            "also": [str(origin) for origin in origins[:-1]],
            "description": spec.description,
            "allowed": spec.allowed,
            "variable": spec.variable or None,
        }

    problems: list[JsonValue] = [
        {
            "source": problem.source,
            "line": problem.line or None,
            "key": problem.key,
            "problem": mask(problem.problem, secrets),
        }
        for problem in loaded.problems
    ]
    return {"settings": [row(spec) for spec in specs], "problems": problems}


def _shown_value(settings: Settings, spec: SettingSpec) -> str:
    return toml_text(mask(value_at(settings, spec.key)))


def _shown_origins(loaded: LoadedSettings, spec: SettingSpec, folder: Path | None) -> str:
    """Where the value in force is set, and what it overrides, or for lists extends."""
    *others, last = (_shown(origin, folder) for origin in loaded.origins_of(spec.key))
    if not others:
        return last
    if spec.kind == "list":
        return " and ".join((*others, last))
    return f"{last}, overrides {', '.join(others)}"


def _shown(origin: Origin, folder: Path | None) -> str:
    """An origin in words; files in the current folder are shown relative to it."""
    text = str(origin)
    return text.replace(f"{folder}/", "", 1) if folder and text.startswith(f"{folder}/") else text


def _problem_lines(loaded: LoadedSettings, folder: Path | None) -> Iterator[str]:
    if not loaded.problems:
        return
    yield ""
    yield "Ignored:"
    for problem in loaded.problems:
        text = str(problem)
        yield f"  {text.replace(f'{folder}/', '', 1) if folder else text}"
