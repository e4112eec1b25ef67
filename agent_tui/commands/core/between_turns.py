"""What features have to say while nothing runs."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

from agent_tui.commands.core.front import Front
from agent_tui.events import AgentEvent
from agent_tui.feature import load_object, own_features

Look: TypeAlias = Callable[[Front], Awaitable[AgentEvent | None]]
"""Looks for something to say; None if there is nothing."""


async def look_between_turns(front: Front) -> tuple[AgentEvent, ...]:
    """What the features found; they look one after another.

    Raises:
        AgentTuiError: One of them failed.
    """
    looks = [cast(Look, load_object(n)) for one in own_features() for n in one.between_turns]
    found = [await look(front) for look in looks]
    return tuple(event for event in found if event is not None)
