"""Watchers of the screen: features bring them to learn what happens on it."""

from collections.abc import Callable, Coroutine
from typing import NamedTuple, cast

from agent_tui.config import Settings
from agent_tui.events import AgentEvent
from agent_tui.feature import load_object, own_features


class WatchedScreen(NamedTuple):
    """What a watcher is given to work with.

    Attributes:
        settings: The settings of this run.
        clock: Monotonic seconds.
        title: Returns what the terminal's title is about: the folder.
        write: Writes a control sequence to the terminal.
        ring: Rings the terminal's bell.
        start_work: Runs a coroutine beside the screen.
    """

    settings: Settings
    clock: Callable[[], float]
    title: Callable[[], str]
    write: Callable[[str], None]
    ring: Callable[[], None]
    start_work: Callable[[Coroutine[None, None, None]], None]


class ScreenWatcher:
    """What the ``screen_watcher`` of a `Feature` names. Its methods do nothing here.

    Args:
        screen: What it works with.
    """

    def __init__(self, screen: WatchedScreen) -> None:
        self.screen = screen

    def see(self, event: AgentEvent) -> None:
        """An event was shown."""

    def note_key(self) -> None:
        """The user pressed a key."""

    def note_focus(self, has_focus: bool) -> None:
        """The terminal gained or lost the focus."""


def make_watchers(screen: WatchedScreen) -> tuple[ScreenWatcher, ...]:
    """Make the watchers that features bring."""
    names = (feature.screen_watcher for feature in own_features() if feature.screen_watcher)
    return tuple(cast("type[ScreenWatcher]", load_object(name))(screen) for name in names)
