"""What features have to say while nothing runs."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

from agent_tui.commands.core.front import Front
from agent_tui.commands.core.plugin_kinds import FEATURES
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent
from agent_tui.feature import load_object

Look: TypeAlias = Callable[[Front], Awaitable[AgentEvent | None]]
"""Looks for something to say; None if there is nothing."""


async def look_between_turns(front: Front) -> tuple[AgentEvent, ...]:
    """What the features found; they look one after another.

    Raises:
        AgentTuiError: One of them failed.
    """
    found: list[AgentEvent] = []
    for feature in front.services.plugins.of(FEATURES):
        for name in feature.between_turns:
            try:
                event = await cast(Look, load_object(name))(front)
            except AgentTuiError:
                raise
            except Exception as error:
                raise AgentTuiError(f"{feature.name} failed: {error}.") from error
            found += [event] if event is not None else []
    return tuple(found)
