"""Commands that features find while the program runs, such as those of files and of servers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias, cast

from agent_tui.commands.core.command import Command
from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.registry import CommandRegistry, FindWithheld, UnusableFile
from agent_tui.feature import load_object, own_features

if TYPE_CHECKING:  # the conversation loads after the first paint
    from agent_tui.agent.runtime import AgentRuntime


@dataclass(frozen=True, slots=True)
class FoundCommands:
    """The commands in force, the files that make none, and what looks in untrusted folders."""

    commands: tuple[Command, ...] = ()
    unusable: tuple[UnusableFile, ...] = ()
    find_withheld: FindWithheld | None = None


@dataclass(frozen=True, slots=True)
class FinderHost:
    """What a finder is given to work with.

    Attributes:
        runtime: The conversation.
        services: What else commands work on.
        taken: Names of the program's commands, which no found command replaces.
        tell: Takes a line for the user.
    """

    runtime: "AgentRuntime"
    services: CommandServices
    taken: frozenset[str]
    tell: Callable[[str], object]


CommandFinder: TypeAlias = Callable[[], Awaitable[FoundCommands]]
"""Finds the commands in force now. They equal those found before if nothing changed."""


class CommandFinders:
    """Keeps a registry up to date with what the finders of features find.

    Args:
        registry: Gets the commands, in the order of the features.
        runtime: See `FinderHost`.
        services: See `FinderHost`.
        tell: See `FinderHost`.
    """

    def __init__(
        self,
        registry: CommandRegistry,
        runtime: "AgentRuntime",
        services: CommandServices,
        tell: Callable[[str], object] = lambda _line: None,
    ) -> None:
        self._registry = registry
        host = FinderHost(runtime, services, registry.own_names, tell)
        names = chain(*(feature.command_finders for feature in own_features()))
        self._finders = [
            cast("Callable[[FinderHost], CommandFinder]", load_object(name))(host) for name in names
        ]
        self._found = [FoundCommands()] * len(self._finders)

    async def refresh(self) -> bool:
        """Have all of them look again; false if nothing changed."""
        found = [await find() for find in self._finders]
        if found == self._found:
            return False
        self._found = found
        self._registry.use_found(
            chain(*(one.commands for one in found)),
            chain(*(one.unusable for one in found)),
            (one.find_withheld for one in found if one.find_withheld is not None),
        )
        return True
