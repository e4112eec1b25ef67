"""Commands that features find while the program runs."""

from typing import cast

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.command import Command, command
from agent_tui.commands.core.found_commands import (
    CommandFinder,
    CommandFinders,
    FinderHost,
    FoundCommands,
)
from agent_tui.commands.core.front import CommandServices, Front
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.commands.core.registry import CommandRegistry, UnusableFile
from agent_tui.feature import Feature
from tests.features.plain.talking import Models

_FILES: list[FoundCommands] = []
"""What the finder of files finds, one for each look."""


@command()
async def help_(_front: Front, _argument: str) -> None:
    """Help."""


def found(name: str, description: str) -> Command:
    return Command(name, description, "", help_.run, source="user")


def make_file_finder(host: FinderHost) -> CommandFinder:
    host.tell(f"Not for files: {', '.join(host.taken)}.")

    async def find() -> FoundCommands:
        return _FILES.pop(0)

    return find


def make_server_finder(_host: FinderHost) -> CommandFinder:
    async def find() -> FoundCommands:
        return FoundCommands((found("srv:ask", "a server's"),))

    return find


@pytest.fixture
def registry() -> CommandRegistry:
    return CommandRegistry([help_])


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def finders(
    registry: CommandRegistry, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> CommandFinders:
    names = (f"{__name__}:{make.__name__}" for make in (make_file_finder, make_server_finder))
    features = [Feature("one", command_finders=(name,)) for name in names]
    monkeypatch.setattr(
        "agent_tui.commands.core.found_commands.own_features", lambda: [Feature("none"), *features]
    )
    services = CommandServices(Models(), KnownModels())
    return CommandFinders(registry, cast(AgentRuntime, None), services, told.append)


async def test_what_all_features_find_is_in_force_until_they_find_something_else(
    finders: CommandFinders, registry: CommandRegistry, told: list[str]
):
    assert told == ["Not for files: help."]
    bad = UnusableFile("~/bad.md", "is empty", "bad")
    mine = FoundCommands((found("srv:ask", "a file's"), found("review", "a file's")), (bad,))
    _FILES[:] = [mine, mine, FoundCommands()]
    assert await finders.refresh()
    assert [one.name for one in registry.commands] == ["help", "srv:ask", "review", "srv:ask"]
    assert registry.find("srv:ask") == found("srv:ask", "a server's"), "the last feature's counts"
    assert registry.unusable == (bad,)
    assert not await finders.refresh()
    assert await finders.refresh()
    assert [one.name for one in registry.commands] == ["help", "srv:ask"]
    assert registry.unusable == ()


async def test_features_that_find_nothing_change_nothing(
    registry: CommandRegistry, monkeypatch: pytest.MonkeyPatch
):
    only = Feature("one", command_finders=(f"{__name__}:{make_file_finder.__name__}",))
    monkeypatch.setattr("agent_tui.commands.core.found_commands.own_features", lambda: [only])
    services = CommandServices(Models(), KnownModels())
    finders = CommandFinders(registry, cast(AgentRuntime, None), services)
    _FILES[:] = [FoundCommands()]
    assert not await finders.refresh()
