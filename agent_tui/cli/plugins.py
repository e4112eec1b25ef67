"""Tools and commands of other packages, which the person's settings name."""

import importlib.util
import re
import sys
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from agent_tui.api.tools import FunctionTool
from agent_tui.commands.core.command import Command
from agent_tui.safe_text import printable_line
from agent_tui.tools.registry import OfferedTool, default_toolbox

TOOLS, COMMANDS = "agent_tui.tools", "agent_tui.commands"
"""Groups of entry points: values of `agent_tui.tool`, and of `agent_tui.command`."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """What was loaded, and for the person a line about each thing that was not.

    Args:
        tools: For the model. They are asked for like tools of MCP servers, since they run in the
            program and not in the sandbox.
        commands: For the person.
        problems: What could not be loaded, and what to do.
    """

    tools: tuple[OfferedTool, ...] = ()
    commands: tuple[Command, ...] = ()
    problems: tuple[str, ...] = ()


def load_plugins(packages: Sequence[str], writable: Collection[Path]) -> Plugins:
    """The tools and commands of `packages`. What goes wrong with one takes nothing from another.

    Args:
        packages: Names of installed packages. No others are imported.
        writable: Folders in which the model's commands may write. A package that lies there is not
            loaded: it would let the model write code that runs outside the sandbox.
    """
    if not packages:
        return Plugins()
    named = {_normal(name): name for name in packages}
    tools: list[OfferedTool] = []
    commands: list[Command] = []
    problems: list[str] = []
    found: set[str] = set()
    taken = {spec.name for spec in default_toolbox().specs}
    for name, entry in _entries(named):
        found.add(name)
        title = f"The plugin {printable_line(named[name])}"
        try:
            if (place := _place_in(entry, writable)) is not None:
                problems.append(
                    f"{title} was not loaded: it lies in {place}, where the model's commands can "
                    "write. Install it where agent-tui itself is installed."
                )
                continue
            with _importing_from_outside(writable):
                value: object = entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's code
            problems.append(f"{title} was not loaded: {type(error).__name__}: {error}")
            continue
        match value:
            case FunctionTool() if value.name in taken:
                problems.append(f"{title} offers a tool called {value.name}, which exists already.")
            case FunctionTool() if entry.group == TOOLS:
                taken.add(value.name)
                tools.append(value.offered(access="outside"))
            case Command() if entry.group == COMMANDS:
                commands.append(value)
            case _:
                maker = "tool" if entry.group == TOOLS else "command"
                problems.append(
                    f"{title} was not loaded: {entry.value} was not made by agent_tui.{maker}."
                )
    problems += (
        f"No plugin {printable_line(shown)} is installed beside agent-tui. Install it with "
        f"`uv tool install agent-tui-cli --with {shown}` or `pipx inject agent-tui-cli {shown}`."
        for name, shown in named.items()
        if name not in found
    )
    return Plugins(tuple(tools), tuple(commands), tuple(dict.fromkeys(problems)))


def _entries(names: Collection[str]) -> Iterator[tuple[str, EntryPoint]]:
    """What the packages called `names` offer, with the name of the package in one form."""
    for entry in (*entry_points(group=TOOLS), *entry_points(group=COMMANDS)):
        if entry.dist is not None and (name := _normal(entry.dist.name)) in names:
            yield name, entry


def _place_in(entry: EntryPoint, folders: Iterable[Path]) -> Path | None:
    """Where in one of `folders` the code or the metadata of `entry` lies; nothing is imported."""
    places = [Path(str(entry.dist.locate_file("")))] if entry.dist is not None else []
    spec = importlib.util.find_spec(entry.module.partition(".")[0])
    if spec is not None:
        places += map(Path, spec.submodule_search_locations or ())
        places += [Path(spec.origin)] if spec.has_location and spec.origin else []
    return next((place.resolve() for place in places if _is_in(place, folders)), None)


@contextmanager
def _importing_from_outside(folders: Collection[Path]) -> Generator[None]:
    """Import nothing from `folders` meanwhile, whatever the search path says."""
    before = sys.path[:]
    sys.path[:] = [path for path in before if not _is_in(Path(path), folders)]
    try:
        yield
    finally:
        sys.path[:] = before


def _is_in(place: Path, folders: Iterable[Path]) -> bool:
    return any(place.resolve().is_relative_to(folder.resolve()) for folder in folders)


def _normal(name: str) -> str:
    """The name of a package as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
