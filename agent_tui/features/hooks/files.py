"""How hooks are defined: in the settings, by plugins, and in files of a trusted project."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast, get_args

from pydantic import JsonValue

from agent_tui.agent.consent import ConsentFile
from agent_tui.agent.hook import DEFAULT_TIMEOUT_S, Hook, HookSpec, matcher_problem
from agent_tui.config import HookEvent, HookSettings, Settings
from agent_tui.messages import JsonObject
from agent_tui.paths import user_data_dir
from agent_tui.permissions.project_files import hook_files
from agent_tui.permissions.trust import FolderTrust
from agent_tui.regular_files import open_regular_file

MAX_TIMEOUT_S = 3_600.0


@dataclass(frozen=True, slots=True)
class FoundHook:
    """A hook and the answer about it; `is_allowed` is None if the user was not asked yet."""

    spec: HookSpec
    is_allowed: bool | None = True


@dataclass(frozen=True, slots=True)
class FoundHooks:
    """The hooks for a folder, and what is wrong with the files that define them."""

    hooks: tuple[FoundHook, ...] = ()
    problems: tuple[str, ...] = ()


class HookSources(Protocol):
    """Where hooks are defined; see `HookFiles`."""

    def find(self, cwd: Path) -> FoundHooks:
        """The hooks for work in `cwd`. Reads files, but none of a folder that is not trusted."""
        ...

    def answer(self, spec: HookSpec, *, is_allowed: bool) -> None:
        """Store the user's answer about a project's hook."""
        ...


_MAX_FILE_BYTES = 200_000
_MAX_HOOKS = 64
_MAX_COMMAND_CHARS = 4_000
"""Longest command: the user is shown all of it, and nobody reads more."""

_EVENTS: Mapping[str, HookEvent] = {event: event for event in get_args(HookEvent)}
_OTHERS_EVENTS = frozenset(
    (
        *("Notification", "SubagentStart", "SubagentStop", "PermissionRequest"),
        *("PostToolUseFailure", "PermissionDenied", "Setup", "TeammateIdle", "TaskCompleted"),
        *("ConfigChange", "WorktreeCreate", "WorktreeRemove", "InstructionsLoaded"),
    )
)
"""Events of other agents that we do not have: skipped without a message."""

_CHANGES_WHEN = ("if", "once")
"""Conditions of other agents' hooks that we lack: without them, a hook would run too often."""


class HookFiles:
    """The `HookSources` that reads the settings and the project's files.

    Args:
        own: The hooks of the user's settings.
        own_source: The file of those settings, for messages.
        trust: Says whether a project's file may be opened.
        consent: Stores the user's answers about a project's hooks.
        brought: The hooks of plugins.
    """

    def __init__(
        self,
        own: Mapping[HookEvent, Sequence[HookSettings]],
        own_source: Path,
        trust: FolderTrust,
        consent: ConsentFile,
        brought: Sequence[HookSpec] = (),
    ) -> None:
        self._own = own
        self._own_source = own_source
        self._trust = trust
        self._consent = consent
        self._brought = brought

    def find(self, cwd: Path) -> FoundHooks:
        """The hooks for work in `cwd`, the user's own and plugins' first. Reads files."""
        specs, problems = own_hooks(self._own, self._own_source)
        specs += self._brought
        for file in hook_files(cwd):
            if self._trust.may_obey(file):
                found, wrong = read_hook_file(file)
                specs += found
                problems += wrong
        unique = {(spec.event, spec.matcher, spec.command): spec for spec in reversed(specs)}
        hooks = [
            FoundHook(spec, self._is_allowed(spec)) for spec in specs if spec in unique.values()
        ]
        return FoundHooks(tuple(hooks), tuple(problems))

    def answer(self, spec: HookSpec, *, is_allowed: bool) -> None:
        """Store the user's answer about a project's hook.

        Raises:
            ConfigError: It cannot be kept; it holds for this run.
        """
        self._consent.keep(spec.fingerprint, is_allowed=is_allowed)

    def _is_allowed(self, spec: HookSpec) -> bool | None:
        return self._consent.is_allowed(spec.fingerprint) if spec.is_projects else True


def own_hooks(
    hooks: Mapping[HookEvent, Sequence[HookSettings]], source: Path
) -> tuple[list[HookSpec], list[str]]:
    """The hooks of the user's settings, and what is wrong with others there."""
    specs: list[HookSpec] = []
    problems: list[str] = []
    for event, settings in hooks.items():
        for one in settings:
            if why := matcher_problem(one.matcher):
                problems.append(f"{source}: {event}: {why}.")
            else:
                specs.append(HookSpec(event, one.command, one.matcher, one.timeout_s, str(source)))
    return specs, problems


def read_hook_file(file: Path) -> tuple[list[HookSpec], list[str]]:
    """The hooks that a project's file defines, and what is wrong with others there.

    The file has ``{"hooks": {EVENT: [{"matcher": ..., "hooks": [{"type": "command", "command":
    ..., "timeout": SECONDS}]}]}}``; other keys belong to other programs.
    """
    try:
        events = _events_in(file)
    except OSError as error:
        return [], [f"{file} cannot be read: {error.strerror}."]
    except (ValueError, RecursionError) as error:
        return [], [f"{file} cannot be used: {error}."]
    specs: list[HookSpec] = []
    problems: list[str] = []
    for name, groups in events.items():
        event = _EVENTS.get(name)
        if event is None:
            if name not in _OTHERS_EVENTS:
                allowed = ", ".join(_EVENTS)
                problems.append(f"{file}: unknown event {name[:40]!r}; the events are {allowed}.")
            continue
        for group in groups if isinstance(groups, list) else [None]:
            try:
                specs += _group(file, event, group)
            except ValueError as error:
                problems.append(f"{file}: {event}: {error}.")
    if len(specs) > _MAX_HOOKS:
        problems.append(f"{file}: only the first {_MAX_HOOKS} hooks are used.")
    return specs[:_MAX_HOOKS], problems


def _events_in(file: Path) -> JsonObject:
    """The part of a file that lists hooks by event.

    Raises:
        OSError: It cannot be read.
        ValueError: It has no such part; says why.
    """
    with open_regular_file(file) as opened:
        content = opened.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {_MAX_FILE_BYTES // 1_000} KB")
    value = cast("JsonValue", json.loads(content.decode("utf-8-sig")))
    events = value.get("hooks", {}) if isinstance(value, dict) else None
    if not isinstance(events, dict):
        raise ValueError('"hooks" must be an object with events as keys')
    return events


def _group(file: Path, event: HookEvent, group: JsonValue) -> Iterator[HookSpec]:
    """The hooks that share a matcher.

    Raises:
        ValueError: One cannot be used; says why.
    """
    if not isinstance(group, dict):
        raise ValueError("it is not an object")
    matcher, hooks = group.get("matcher") or "", group.get("hooks")
    if not isinstance(matcher, str) or not isinstance(hooks, list):
        raise ValueError('it needs a list "hooks", and its matcher must be a string')
    if why := matcher_problem(matcher):
        raise ValueError(why)
    for hook in hooks:
        if not isinstance(hook, dict):
            raise ValueError("it is not an object")
        yield HookSpec(
            event, _command(hook), matcher, _timeout_s(hook), str(file), is_projects=True
        )


def _command(hook: JsonObject) -> str:
    if hook.get("type", "command") != "command":
        raise ValueError(f"only command hooks are supported, not {str(hook['type'])[:40]!r}")
    if unknown := [key for key in _CHANGES_WHEN if hook.get(key)]:
        raise ValueError(f"{unknown[0]!r} is not supported")
    command, words = hook.get("command"), hook.get("args", [])
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise ValueError("it has no command")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("args must be a list of strings")
    if words:
        command = shlex.join([command, *map(str, words)])
    if len(command) > _MAX_COMMAND_CHARS:
        raise ValueError(f"its command is longer than {_MAX_COMMAND_CHARS:,} characters")
    return command


def _timeout_s(hook: JsonObject) -> float:
    timeout = hook.get("timeout", DEFAULT_TIMEOUT_S)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
        raise ValueError("its timeout must be a number of seconds greater than 0")
    return min(float(timeout), MAX_TIMEOUT_S)


def hook_sources(
    settings: Settings, config_file: Path, trust: FolderTrust, brought: Iterable[object]
) -> HookFiles:
    """Where the hooks of conversations are defined, with the user's decisions about a project's.

    Args:
        settings: The user's own.
        config_file: Their file, for messages.
        trust: Says whether a project's file may be opened.
        brought: What plugins bring: each a `Hook`.
    """
    consent = ConsentFile(user_data_dir() / "hooks.json", "hooks")
    specs = [cast(Hook, one).spec for one in brought]
    return HookFiles(settings.hooks, config_file, trust, consent, specs)
