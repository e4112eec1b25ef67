"""The entries that record a wait for a model's limit to reset, so that a restart continues it."""

import platform
from collections.abc import Sequence
from typing import Final, Literal

from agent_tui.messages import Stored
from agent_tui.sessions.entries import (
    CustomEntry,
    Entry,
    MessageEntry,
    ModelChangeEntry,
    custom_entry,
    custom_value,
)

LIMIT_WAIT: Final = "limit_wait"
"""The custom type of the entries."""


class LimitWait(Stored):
    """A wait, or its end: ``over`` when the turn continues, ``stopped`` if the user stopped it.

    ``replaced``: nothing waits, as another model works in place of ``model`` until then.
    ``until_s`` is in seconds since 1970. ``is_reset``: a limit resets then; otherwise the request
    is only tried again. ``host`` is the machine that waits.
    """

    state: Literal["waiting", "over", "stopped", "replaced"] = "waiting"
    model: str = ""
    reason: str = ""
    until_s: float = 0.0
    is_reset: bool = True
    host: str = ""


def wait_entry(wait: LimitWait) -> CustomEntry:
    """The entry that records `wait`, on this machine."""
    return custom_entry(LIMIT_WAIT, wait.model_copy(update={"host": platform.node()}))


def replaced_model(path: Sequence[Entry]) -> LimitWait | None:
    """The limit because of which the newest model on `path` replaces another; None without one."""
    for entry in reversed(path):
        if isinstance(entry, ModelChangeEntry):
            return None
        wait = custom_value(entry, LIMIT_WAIT, LimitWait)
        if wait is not None and wait.state == "replaced":
            return wait
    return None


def open_wait(path: Sequence[Entry]) -> LimitWait | None:
    """The wait of this machine that the branch `path` ends in; None if it ends in none.

    A session that was copied here from another machine does not continue automatically.
    """
    for entry in reversed(path):
        if isinstance(entry, MessageEntry):
            return None
        if (wait := custom_value(entry, LIMIT_WAIT, LimitWait)) is not None:
            is_open = wait.state == "waiting" and wait.host == platform.node()
            return wait if is_open else None
    return None
