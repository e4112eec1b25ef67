"""What a feature brings: names of objects, which are imported when they are asked for.

A feature of the program is a folder of ``agent_tui/features`` whose ``feature.py`` has a `FEATURE`;
it can be deleted. A feature of another package is the same value, named by an entry point.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, cast

_NOTHING: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})


class SubcommandModule(Protocol):
    """What the module of a subcommand offers."""

    def build_parser(self) -> argparse.ArgumentParser:
        """The parser of its command line."""
        ...

    def run_command(self, argv: Sequence[str], /) -> int:
        """Run it with the arguments after its name; returns the exit code."""
        ...


class Subcommand(NamedTuple):
    """A subcommand of ``agent-tui``.

    Attributes:
        name: The word typed after ``agent-tui``.
        summary: What it does, in one line.
        module: Its module; imported only when needed.
    """

    name: str
    summary: str
    module: str

    def load(self) -> SubcommandModule:
        """Import the module."""
        return cast(SubcommandModule, import_module(self.module))


class Feature(NamedTuple):
    """What a feature brings. An object is named ``module:name``, as in entry points.

    A named tuple, because every start makes all of them: a dataclass takes 3 ms to make.

    Attributes:
        name: The name of its folder.
        subcommands: What can be typed after ``agent-tui``.
        verbs: Functions that add verbs to a subcommand, by its name.
        between_turns: Functions of a `Front` that look for something to say, with an event or None
            as their result. They are awaited when a front begins, and after turns on the screen.
        tools: Functions that make a tool from a `ToolHost` (``tools/registry.py``). Plugins use
            `agent_tui.tool` instead, whose calls are always judged as outside the sandbox.
        part: What it does in each conversation: a class, a `Part` (``agent/part.py``).
        brings: Objects by the group of their kind in ``commands/core/plugin_kinds.py``, such as
            ``agent_tui.commands``.
    """

    name: str
    subcommands: tuple[Subcommand, ...] = ()
    verbs: Mapping[str, Sequence[str]] = _NOTHING
    between_turns: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    part: str = ""
    brings: Mapping[str, Sequence[str]] = _NOTHING


@cache
def own_features() -> tuple[Feature, ...]:
    """The features in the program's own folder, by name; imports nothing else of them."""
    folder = Path(__file__).with_name("features")
    modules = (f"agent_tui.features.{found.name}.feature" for found in iter_modules([str(folder)]))
    return tuple(cast(Feature, import_module(module).FEATURE) for module in modules)


def named_modules(feature: Feature) -> frozenset[str]:
    """The modules of all that `feature` names."""
    part = (feature.part,) if feature.part else ()
    tables = (*feature.brings.values(), *feature.verbs.values(), feature.between_turns, part)
    objects = (name.partition(":")[0] for table in tables for name in table)
    return frozenset((*objects, *(row.module for row in feature.subcommands)))


def load_object(name: str) -> object:
    """Import the object that ``module:name`` names."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def own_names(group: str) -> tuple[str, ...]:
    """The variables that hold what the program's own features bring of a kind; imports nothing."""
    names = (name for one in own_features() for name in one.brings.get(group, ()))
    return tuple(name.rpartition(":")[2] for name in names)


def own_objects(group: str) -> Iterator[object]:
    """What the program's own features bring of the kind with this `group`."""
    for feature in own_features():
        yield from map(load_object, feature.brings.get(group, ()))
