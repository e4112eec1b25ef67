"""Loads what other packages bring: those that the user's settings name, and no others."""

import difflib
import importlib
import importlib.util
import re
import sys
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent_tui.cli.folders import present_folder_or_none
from agent_tui.cli.settings import read_settings
from agent_tui.cli.subcommands import SUBCOMMANDS as OWN
from agent_tui.commands.core.plugin_kinds import (
    FEATURES,
    KINDS,
    SUBCOMMANDS,
    kinds_named_by,
    spec_with_plugins,
)
from agent_tui.commands.core.plugins import AnyKind, Named, Plugins, find_installed
from agent_tui.config import PLUGIN_NAME
from agent_tui.config.specs import SettingSpec
from agent_tui.feature import Feature, Subcommand, named_modules
from agent_tui.safe_paths import real_path
from agent_tui.safe_text import printable_line

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint


_MOST_SUMMARY_CHARS = 60


def plugins_in_shell(*kinds: AnyKind) -> Plugins:
    """What the packages in the user's settings bring of `kinds`, for a subcommand."""
    here = present_folder_or_none()
    return load_plugins(read_settings(None).plugins, (here,) if here else (), kinds)


def specs_in_shell(specs: Sequence[SettingSpec]) -> tuple[SettingSpec, ...]:
    """`specs` with the names that plugins bring among their choices, for a subcommand."""
    kinds = dict.fromkeys(kind for spec in specs for kind in kinds_named_by(spec))
    plugins = plugins_in_shell(*kinds) if kinds else Plugins()
    return tuple(spec_with_plugins(spec, plugins) for spec in specs)


def brought_subcommands() -> Mapping[str, Subcommand]:
    """The subcommands of the packages in the user's settings, by name."""
    plugins = plugins_in_shell(FEATURES, SUBCOMMANDS)
    rows = [row for feature in plugins.of(FEATURES) for row in feature.subcommands]
    return {row.name: row for row in (*rows, *plugins.of(SUBCOMMANDS))}


def named_subcommands() -> Iterator[tuple[str, str]]:
    """The name of each subcommand that a package in the user's settings has an entry point for.

    Beside it is what the package says about itself. Imports no package.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # slow to load

    for package in read_settings(None).plugins:
        try:
            found = distribution(package)
            summary = (found.metadata.get_all("Summary") or [package])[0]
            entries = found.entry_points.select(group=SUBCOMMANDS.group)
        except (PackageNotFoundError, ValueError, OSError):
            continue  # `load_plugins` reports it
        for entry in entries:
            if re.fullmatch(PLUGIN_NAME, entry.name) and entry.name not in OWN:
                yield entry.name, printable_line(summary, _MOST_SUMMARY_CHARS)


def load_plugins(
    packages: Sequence[str], writable: Collection[Path], kinds: Sequence[AnyKind] = KINDS
) -> Plugins:
    """Load what `packages` bring of `kinds`. A fault in one does not affect the others.

    Args:
        packages: Names of installed packages. No others are imported.
        writable: Folders where the model's commands may write. A package there is not loaded: the
            model could write code that runs outside the sandbox.
        kinds: What is wanted; entry points of other groups are not imported.
    """
    if not packages:
        return Plugins()
    from importlib.metadata import PackageNotFoundError, distribution  # slow to load

    kinds = tuple(dict.fromkeys((FEATURES, *kinds)))  # a feature may bring all of them
    brought: dict[str, list[Named]] = {kind.group: [] for kind in kinds}
    problems: list[str] = []
    parts: dict[str, list[str]] = {}
    for package in packages:
        shown = printable_line(package)
        try:
            found = distribution(package)
            entries = found.entry_points
        except PackageNotFoundError:
            near = difflib.get_close_matches(package, find_installed(KINDS), n=1)
            meant = f"Did you mean {near[0]}? Otherwise install" if near else "Install"
            problems.append(
                f"No plugin {shown} is installed beside agent-tui. {meant} it with `uv tool "
                f"install agent-tui-cli --with {shown}` or `pipx inject agent-tui-cli {shown}`, "
                f"or remove {shown} from `plugins`."
            )
            continue
        except (ValueError, OSError) as error:
            problems.append(f"The metadata of the plugin {shown} cannot be read: {error}.")
            continue
        parts[shown] = []
        before = len(brought[FEATURES.group])
        if not any(entry.group == kind.group for entry in entries for kind in KINDS):
            problems.append(
                f"The package {shown} brings nothing: it has no entry point for agent-tui. Remove "
                "it from `plugins`, or check its name."
            )
        for kind in kinds:
            features = cast("list[Feature]", brought[FEATURES.group][before:])
            for entry in (*entries.select(group=kind.group), *_entries_of(features, kind)):
                try:
                    value = _check(_load(entry, found, writable), entry, kind, writable)
                    taken = _names_taken(kind, brought[kind.group])
                    if clash := next((name for name in kind.names(value) if name in taken), ""):
                        raise _UnusableError(f"{clash} exists already")
                    brought[kind.group].append(kind.guarded(value))
                    parts[shown].append(f"{kind.maker} {value.name}")
                except _UnusableError as error:
                    problems.append(f"Of the plugin {shown}, {entry.name} was not loaded: {error}.")
    return Plugins(brought, tuple(dict.fromkeys(problems)), parts)


def _check(value: object, entry: "EntryPoint", kind: AnyKind, writable: Collection[Path]) -> Named:
    """`value` as one of `kind`.

    Raises:
        _UnusableError: It is something else, its name cannot be typed as one word, or a feature
            cannot be loaded.
    """
    if not isinstance(value, kind.value_type()):
        raise _UnusableError(f"{entry.value} was not made by agent_tui.{kind.maker}")
    made = cast(Named, value)
    if not re.fullmatch(PLUGIN_NAME, str(made.name)):
        raise _UnusableError(f"its name {made.name!r} is not a word of letters, digits, - and _")
    if isinstance(value, Feature):
        _load_feature(value, entry, writable)
    if isinstance(value, Subcommand):
        if value.name in OWN:
            raise _UnusableError(f"{value.name} exists already")
        if value.name != entry.name:
            raise _UnusableError(f"its name is {value.name}, not that of its entry point")
        _load_feature(Feature(value.name, subcommands=(value,)), entry, writable)
    return made


def _load_feature(feature: Feature, entry: "EntryPoint", writable: Collection[Path]) -> None:
    """Import what `feature` names now: later, nothing keeps it from importing from `writable`.

    Raises:
        _UnusableError: It cannot be imported, is in another package than `entry`, whose place is
            known, or is a tool that no rule would judge.
    """
    if feature.tools:
        raise _UnusableError("its tools are not made with agent_tui.tool; name them in `brings`")
    if brought := [name for name in _NEEDED_EARLIER if getattr(feature, name)]:
        raise _UnusableError(f"plugins are loaded too late to bring {' and '.join(brought)}")
    package = entry.module.partition(".")[0]
    for module in sorted(named_modules(feature)):
        if module.partition(".")[0] != package:
            raise _UnusableError(f"it names {module}, which is not in its own package")
        try:
            with importing_from_outside(writable):
                importlib.import_module(module)
        except (Exception, SystemExit) as error:
            raise _UnusableError(f"{type(error).__name__}: {error}") from error
    if feature.part and not _is_part(feature.part):
        raise _UnusableError(f"{feature.part} is not derived from Part")


def _is_part(name: str) -> bool:
    from agent_tui.agent.part import Part  # most of the program

    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute, None)
    return isinstance(found, type) and issubclass(found, Part)


def _entries_of(features: Iterable[Feature], kind: AnyKind) -> Iterator["EntryPoint"]:
    """What `features` bring of `kind`, as entry points."""
    from importlib.metadata import EntryPoint

    for feature in features:
        for name in feature.brings.get(kind.group, ()):
            yield EntryPoint(name.rpartition(":")[2], name, kind.group)


def _names_taken(kind: AnyKind, brought: Iterable[Named]) -> set[str]:
    names = {name for one in (*kind.own(), *brought) for name in kind.names(one)}
    return names | {*kind.reserved()}


_NEEDED_EARLIER = (
    "options",
    "options_module",
    "around",
    "completions",
    "headless",
    "front",
    "tool_servers",
    "sandbox",
    "curator",
    "caller",
    "local_models",
    "adapters",
    "settings",
    "prompt_modes",
    "screen_watcher",
    "stores",
    "stores_elsewhere",
)
"""What of a feature is used before plugins are loaded."""


class _UnusableError(Exception):
    """Why part of a plugin cannot be used, as a clause."""


def _load(entry: "EntryPoint", package: "Distribution", writable: Collection[Path]) -> object:
    """Import what `entry` of `package` names.

    Raises:
        _UnusableError: It cannot be imported, or lies in a writable folder.
    """
    try:
        if (place := _place_in(entry, package, writable)) is None:
            with importing_from_outside(writable):
                return entry.load()
    except (Exception, SystemExit) as error:
        raise _UnusableError(f"{type(error).__name__}: {error}") from error
    raise _UnusableError(
        f"it lies in {place}, where the model's commands can write; install it where agent-tui "
        "itself is installed"
    )


def _place_in(entry: "EntryPoint", package: "Distribution", folders: Iterable[Path]) -> Path | None:
    """Where in `folders` the code or metadata of `entry` lies; None if outside. Imports nothing."""
    places = [Path(str(package.locate_file("")))]
    spec = importlib.util.find_spec(entry.module.partition(".")[0])
    if spec is not None:
        places += map(Path, spec.submodule_search_locations or ())
        places += [Path(spec.origin)] if spec.has_location and spec.origin else []
    return next((real_path(place) for place in places if _is_in(place, folders)), None)


@contextmanager
def importing_from_outside(folders: Collection[Path]) -> Generator[None]:
    """Import nothing from `folders` inside the block, whatever the search path says."""
    before = sys.path[:]
    sys.path[:] = [path for path in before if not _is_in(Path(path), folders)]
    try:
        yield
    finally:
        sys.path[:] = before


def _is_in(place: Path, folders: Iterable[Path]) -> bool:
    return any(real_path(place).is_relative_to(real_path(folder)) for folder in folders)
