"""Settings: files, environment and flags merged into one frozen value; strongest last.

A wrong key or value never stops the program: it is left out and reported as a
`SettingProblem` naming file, line, key and what is allowed.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias, cast, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from agent_tui.messages import JsonObject, ThinkingLevel

PermissionMode: TypeAlias = Literal["ask", "accept-edits", "plan", "full"]
Durability: TypeAlias = Literal["entry", "turn", "none"]
SandboxMode: TypeAlias = Literal["off", "auto", "on"]
CompactionStrategy: TypeAlias = Literal["tiered", "hybrid", "agent"]

STRATEGY_NAMES: tuple[CompactionStrategy, ...] = get_args(CompactionStrategy)
"""``tiered`` is what the others fall back on."""


def strategy_named(text: str) -> CompactionStrategy | None:
    """The strategy called `text`; None for no such name."""
    for name in STRATEGY_NAMES:
        if text == name:
            return name
    return None


_HYBRID_THRESHOLDS: Mapping[str, float] = MappingProxyType({"warn_at": 0.60, "trigger_at": 0.70})
"""It needs more room to work in than the tiers: what it leaves it leaves message by message."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CompactionSettings(_Section):
    """``[compaction]``. Fractions are of the window less the output reserve.

    `min_gain` is a fraction of the whole window: a compaction that frees less is not worth the
    prompt cache that it breaks. `strategy` is how room is made when the window fills; ``hybrid``
    warns at 0.60 and fires at 0.70 unless told otherwise.
    """

    strategy: CompactionStrategy = "tiered"
    model: str = ""
    auto: bool = True
    warn_at: float = Field(default=0.70, gt=0, lt=1)
    trigger_at: float = Field(default=0.80, gt=0, lt=1)
    target: float = Field(default=0.40, gt=0, lt=1)
    min_gain: float = Field(default=0.10, ge=0, lt=1)
    protected_messages: int = Field(default=12, ge=1)
    keep_recent_tokens: int = Field(default=0, ge=0)
    max_summary_tokens: int = Field(default=4_000, ge=200)
    max_output_tokens: int = Field(default=2_000, ge=600)
    template: Literal["structured", "seven-section"] = "structured"
    summary_role: Literal["user", "system"] = "user"
    background: bool = True

    @model_validator(mode="before")
    @classmethod
    def _thresholds_of_strategy(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        given = cast("dict[str, object]", values)
        return {**_HYBRID_THRESHOLDS, **given} if given.get("strategy") == "hybrid" else given

    def keep_recent(self, window: int) -> int:
        """Tokens of recent messages to keep: the setting, or 20 % of `window` up to 20,000."""
        return self.keep_recent_tokens or min(window // 5, 20_000)


class PermissionSettings(_Section):
    """``[permissions]``: rules such as ``bash(git status)`` or ``write(docs/**)``.

    `pass_environment` names variables (``GITHUB_TOKEN``, ``AWS_*``) that commands are given
    although they hold secrets.
    """

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    pass_environment: tuple[str, ...] = ()


class ModelSettings(_Section):
    """``[models."name"]``: what to believe of one model instead of the built-in table."""

    window: int | None = Field(default=None, gt=0)
    max_output: int | None = Field(default=None, gt=0)
    base_url: str | None = None
    api_key_env: str | None = None


class LocalSettings(_Section):
    """``[local]``: the built-in server of models on this machine. 0 leaves a value to it.

    `model` is what ``--local`` uses, `context` the window in tokens, `gpu_layers` how many layers
    go to the graphics card (-1: as many as fit).
    """

    model: str = ""
    threads: int = Field(default=0, ge=0)
    context: int = Field(default=0, ge=0)
    gpu_layers: int = Field(default=-1, ge=-1)


class Settings(_Section):
    """All settings. Times in seconds, sizes in tokens.

    `sandbox`: ``auto`` uses one for the model's commands where it works, ``on`` runs none
    without.
    """

    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    thinking: ThinkingLevel = "off"
    permission_mode: PermissionMode = "ask"
    session_dir: str = ""
    durability: Durability = "entry"
    sandbox: SandboxMode = "off"
    theme: str = ""
    mouse: bool = True
    bash_timeout_s: float = Field(default=120.0, gt=0)
    request_idle_timeout_s: float = Field(default=120.0, gt=0)
    compaction: CompactionSettings = CompactionSettings()
    permissions: PermissionSettings = PermissionSettings()
    local: LocalSettings = LocalSettings()
    models: dict[str, ModelSettings] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One setting that was left out. `line` is 0 where there is none (environment, flags)."""

    source: str
    line: int
    key: str
    problem: str

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}" if self.line else self.source
        return f"{where}: {self.key}: {self.problem}"


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings in force and what could not be used."""

    settings: Settings
    problems: tuple[SettingProblem, ...]


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
        project_files: Settings of a trusted project, the most general first. They stand between
            `user_file` and the environment, and only say what `_refusals` lets them.
    """
    problems: list[SettingProblem] = []
    merged = _keep_valid(*_read_file(user_file, problems), problems)
    for file in project_files:
        merged = _with_project(file, merged, problems)
    given_flags: JsonObject = {k: v for k, v in (flags or {}).items() if v is not None}
    for source, values in (("environment", _from_environ(environ)), ("command line", given_flags)):
        merged = _merge(merged, _keep_valid(source, values, {}, problems))
    return LoadedSettings(Settings.model_validate(merged), tuple(problems))


def _with_project(path: Path, before: JsonObject, problems: list[SettingProblem]) -> JsonObject:
    """`before` with what the project's file `path` may set; its rules are added to the others."""
    source, values, lines = _read_file(path, problems)
    good = _keep_valid(source, values, lines, problems)
    own = Settings.model_validate(before)
    for location, why in tuple(_refusals(good, own)):
        line = _line_of(lines, location)
        problems.append(SettingProblem(source, line, ".".join(location), why))
        good = _without(good, location)
    added = Settings.model_validate(good).permissions
    rules: JsonObject = {
        "ask": [*own.permissions.ask, *added.ask],
        "deny": [*own.permissions.deny, *added.deny],
    }
    return _merge(_merge(before, good), {"permissions": rules})


_PROJECT_SETTINGS = frozenset(
    {
        *("model", "thinking", "theme", "mouse", "bash_timeout_s", "request_idle_timeout_s"),
        *("compaction", "permission_mode", "sandbox", "permissions", "models"),
    }
)
_PROJECT_PERMISSIONS = frozenset({"ask", "deny"})
_PROJECT_MODELS = frozenset({"window", "max_output"})
_NOT_A_PROJECTS = "belongs in your own config.toml; a project's cannot set it"
_ONLY_TIGHTER = "a project's config.toml can only tighten it; this belongs in your own"
_NO_ADDRESS = "a project's config.toml can name a model, not an address"
_LOOSER_MODES: tuple[PermissionMode, ...] = ("plan", "ask", "accept-edits", "full")
_LOOSER_SANDBOXES: tuple[SandboxMode, ...] = ("on", "auto", "off")


def _refusals(values: JsonObject, own: Settings) -> Iterator[tuple[list[str], str]]:
    """What a project's file, valid as such, may not set, and why.

    It may choose how the work is done and make it stricter. It may not say where requests,
    keys and files go, nor allow what the person's own settings do not.
    """
    for key, value in values.items():
        if key not in _PROJECT_SETTINGS:
            yield [key], _NOT_A_PROJECTS
        elif key == "permissions" and isinstance(value, dict):
            refused = value.keys() - _PROJECT_PERMISSIONS
            yield from (([key, inner], _NOT_A_PROJECTS) for inner in sorted(refused))
        elif key == "models" and isinstance(value, dict):
            for name, model in value.items():
                refused = model.keys() - _PROJECT_MODELS if isinstance(model, dict) else ()
                yield from (([key, name, inner], _NOT_A_PROJECTS) for inner in sorted(refused))
    wanted = Settings.model_validate(values)
    if "permission_mode" in values and _is_later(
        wanted.permission_mode, own.permission_mode, _LOOSER_MODES
    ):
        yield ["permission_mode"], _ONLY_TIGHTER
    if "sandbox" in values and _is_later(wanted.sandbox, own.sandbox, _LOOSER_SANDBOXES):
        yield ["sandbox"], _ONLY_TIGHTER
    if "://" in wanted.model:
        yield ["model"], _NO_ADDRESS
    if "://" in wanted.compaction.model:
        yield ["compaction", "model"], _NO_ADDRESS


def _is_later(one: str, other: str, order: Sequence[str]) -> bool:
    return order.index(one) > order.index(other)


def _read_file(
    path: Path, problems: list[SettingProblem]
) -> tuple[str, JsonObject, dict[str, int]]:
    source = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        values = tomllib.loads(text)
    except FileNotFoundError:
        return source, {}, {}
    except OSError as error:
        problems.append(SettingProblem(source, 0, "", f"cannot be read: {error.strerror}"))
        return source, {}, {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else 0
        problems.append(SettingProblem(source, line, "", f"not valid TOML: {error}"))
        return source, {}, {}
    return source, values, _key_lines(text)


def _key_lines(text: str) -> dict[str, int]:
    """Line number of each ``section.key`` of a TOML text, for messages."""
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            section = header[1].strip().replace('"', "") + "."
            lines[section[:-1]] = number
        elif assignment := re.match(r"\s*([\w.\"-]+)\s*=", line):
            lines[section + assignment[1].replace('"', "")] = number
    return lines


def setting_variables() -> Mapping[str, str]:
    """Environment variable -> the setting it sets, as ``compaction.auto``."""
    return {"AGENT_TUI_" + name.upper().replace(".", "__"): name for name in _scalar_keys()}


def _from_environ(environ: Mapping[str, str]) -> JsonObject:
    values: JsonObject = {}
    for variable, name in setting_variables().items():
        if (text := environ.get(variable)) is not None:
            section, _, key = name.rpartition(".")
            if section:
                inner = values.setdefault(section, {})
                assert isinstance(inner, dict)
                inner[key] = text
            else:
                values[key] = text
    return values


def _scalar_keys() -> list[str]:
    sections = ("compaction", "local", "permissions", "models")
    keys = [name for name in Settings.model_fields if name not in sections]
    keys += [f"compaction.{name}" for name in CompactionSettings.model_fields]
    return keys + [f"local.{name}" for name in LocalSettings.model_fields]


def _keep_valid(
    source: str, values: JsonObject, lines: dict[str, int], problems: list[SettingProblem]
) -> JsonObject:
    """`values` without what does not validate; each thing left out becomes a problem."""
    remaining = values
    while True:
        try:
            Settings.model_validate(remaining)
        except ValidationError as error:
            for detail in error.errors():
                location = [str(part) for part in detail["loc"]]
                key = ".".join(location)
                problems.append(
                    SettingProblem(
                        source,
                        _line_of(lines, location),
                        key,
                        _explain(detail["type"], detail["msg"], location),
                    )
                )
                remaining = _without(remaining, location)
            continue
        return remaining


def _line_of(lines: dict[str, int], location: list[str]) -> int:
    for length in range(len(location), 0, -1):
        if line := lines.get(".".join(location[:length])):
            return line
    return 0


def _explain(kind: str, message: str, location: list[str]) -> str:
    if kind != "extra_forbidden":
        return message
    section = {
        "compaction": CompactionSettings,
        "local": LocalSettings,
        "permissions": PermissionSettings,
        "models": ModelSettings,
    }.get(location[0], Settings)
    allowed = list(section.model_fields)
    near = difflib.get_close_matches(location[-1], allowed, n=1)
    if near:
        return f"no such setting; did you mean {near[0]}?"
    return "no such setting; allowed: " + ", ".join(allowed)


def _without(values: JsonObject, location: list[str]) -> JsonObject:
    """A copy of `values` without the deepest mapping key that `location` names."""
    head, rest = location[0], location[1:]
    inner = values.get(head)
    if rest and isinstance(inner, dict):
        return {**values, head: _without(inner, rest)}
    return {key: value for key, value in values.items() if key != head}


def _merge(base: JsonObject, over: JsonObject) -> JsonObject:
    merged = dict(base)
    for key, value in over.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[key] = _merge(before, value)
        else:
            merged[key] = value
    return merged
