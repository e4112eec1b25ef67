"""Loads tools and commands from other packages that the user's settings name."""

import importlib.util
import sys
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution
from pathlib import Path

from agent_tui.api.tools import FunctionTool
from agent_tui.commands.core.command import Command
from agent_tui.safe_text import printable_line
from agent_tui.tools.registry import OfferedTool, default_toolbox

TOOLS, COMMANDS = "agent_tui.tools", "agent_tui.commands"
"""Entry point groups: values of `agent_tui.tool`, and of `agent_tui.command`."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """What was loaded, and a line for the user about each thing that was not.

    Args:
        tools: For the model. They need approval like tools of MCP servers, since they run in the
            program and not in the sandbox.
        commands: For the user.
        problems: What could not be loaded, and what to do.
    """

    tools: tuple[OfferedTool, ...] = ()
    commands: tuple[Command, ...] = ()
    problems: tuple[str, ...] = ()


def load_plugins(packages: Sequence[str], writable: Collection[Path]) -> Plugins:
    """Load the tools and commands of `packages`. A fault in one does not affect the others.

    Args:
        packages: Names of installed packages. No others are imported.
        writable: Folders where the model's commands may write. A package there is not loaded: the
            model could write code that runs outside the sandbox.
    """
    if not packages:
        return Plugins()
    tools: list[OfferedTool] = []
    commands: list[Command] = []
    problems: list[str] = []
    taken = {spec.name for spec in default_toolbox().specs}
    for package in packages:
        shown = printable_line(package)
        try:
            found = distribution(package)
            entries = [one for one in found.entry_points if one.group in (TOOLS, COMMANDS)]
        except PackageNotFoundError:
            problems.append(
                f"No plugin {shown} is installed beside agent-tui. Install it with `uv tool "
                f"install agent-tui-cli --with {shown}` or `pipx inject agent-tui-cli {shown}`."
            )
            continue
        except (ValueError, OSError) as error:
            problems.append(f"The metadata of the plugin {shown} cannot be read: {error}.")
            continue
        for entry in entries:
            try:
                value = _load(entry, found, writable)
                match value:
                    case FunctionTool() if value.name in taken:
                        raise _UnusableError(f"its tool {value.name} exists already")
                    case FunctionTool() if entry.group == TOOLS:
                        taken.add(value.name)
                        tools.append(value.offered(access="outside"))
                    case Command() if entry.group == COMMANDS:
                        commands.append(value)
                    case _:
                        maker = "tool" if entry.group == TOOLS else "command"
                        raise _UnusableError(f"{entry.value} was not made by agent_tui.{maker}")
            except _UnusableError as error:
                problems.append(f"Of the plugin {shown}, {entry.name} was not loaded: {error}.")
    return Plugins(tuple(tools), tuple(commands), tuple(dict.fromkeys(problems)))


class _UnusableError(Exception):
    """Why part of a plugin cannot be used, as a clause."""


def _load(entry: EntryPoint, package: Distribution, writable: Collection[Path]) -> object:
    """Import what `entry` of `package` names.

    Raises:
        _UnusableError: It cannot be imported, or lies in a writable folder.
    """
    try:
        if (place := _place_in(entry, package, writable)) is None:
            with _importing_from_outside(writable):
                return entry.load()
    except (Exception, SystemExit) as error:
        raise _UnusableError(f"{type(error).__name__}: {error}") from error
    raise _UnusableError(
        f"it lies in {place}, where the model's commands can write; install it where agent-tui "
        "itself is installed"
    )


def _place_in(entry: EntryPoint, package: Distribution, folders: Iterable[Path]) -> Path | None:
    """Where in `folders` the code or metadata of `entry` lies; None if outside. Imports nothing."""
    places = [Path(str(package.locate_file("")))]
    spec = importlib.util.find_spec(entry.module.partition(".")[0])
    if spec is not None:
        places += map(Path, spec.submodule_search_locations or ())
        places += [Path(spec.origin)] if spec.has_location and spec.origin else []
    return next((place.resolve() for place in places if _is_in(place, folders)), None)


@contextmanager
def _importing_from_outside(folders: Collection[Path]) -> Generator[None]:
    """Import nothing from `folders` inside the block, whatever the search path says."""
    before = sys.path[:]
    sys.path[:] = [path for path in before if not _is_in(Path(path), folders)]
    try:
        yield
    finally:
        sys.path[:] = before


def _is_in(place: Path, folders: Iterable[Path]) -> bool:
    return any(place.resolve().is_relative_to(folder.resolve()) for folder in folders)
