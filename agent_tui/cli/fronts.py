"""The fronts that features bring beside the screen and ``-p``."""

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from agent_tui.cli.arguments import Arguments
from agent_tui.cli.early_settings import is_switched_on
from agent_tui.feature import Feature, own_features

if TYPE_CHECKING:
    from agent_tui.permissions.trust import FolderTrust


class FrontModule(Protocol):
    """What the module that a feature names as its `front` offers."""

    def run_front(self, arguments: Arguments, /) -> int:
        """Hold the conversation; returns the exit code."""
        ...

    def ask_for_trust(self, trust: "FolderTrust", arguments: Arguments, /) -> None:
        """Ask on the terminal whether to trust the folder, before anything in it is read."""
        ...


def chosen_front(arguments: Arguments) -> FrontModule | None:
    """The front that the command line, a variable or the settings choose; None for the screen."""
    return next((_load(one) for one in _with_front() if is_switched_on(one.name, arguments)), None)


def terminal_front() -> FrontModule | None:
    """A front for questions that come before the screen; None if no feature brings one."""
    return next(map(_load, _with_front()), None)


def switches_to_fronts() -> tuple[str, ...]:
    """How each front is chosen, as a command line and what it does."""
    return tuple(
        f"agent-tui --{option.name} to {option.summary}"
        for feature in _with_front()
        for option in feature.options
        if option.name == feature.name
    )


def _with_front() -> tuple[Feature, ...]:
    return tuple(feature for feature in own_features() if feature.front)


def _load(feature: Feature) -> FrontModule:
    return cast(FrontModule, import_module(feature.front))
