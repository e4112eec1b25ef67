"""What features have to say while nothing runs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import TypeAlias, cast

from agent_tui.commands.core.front import Front
from agent_tui.commands.core.plugin_kinds import FEATURES
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent, FeatureEvent, Notice
from agent_tui.feature import load_object
from agent_tui.outside_code import is_fault
from agent_tui.safe_text import printable_line

Look: TypeAlias = Callable[[Front], object]
"""Looks for something to say, also as a coroutine: an event, or None if there is nothing."""

_FAILED = "The feature {feature} failed as it looked for something to say ({name}): {why}"


@dataclass(slots=True)
class BetweenTurns:
    """Lets the features look; each fault of a feature's code is told once.

    Args:
        front: What the features are called with.
    """

    front: Front
    _failed: set[str] = field(default_factory=set[str], init=False)

    async def look(self) -> tuple[AgentEvent, ...]:
        """What the features found; they look one after another.

        What goes wrong as they work (`AgentTuiError`) can wait for the feature's command.
        """
        found: list[AgentEvent] = []
        for feature in self.front.services.plugins.of(FEATURES):
            for name in feature.between_turns:
                try:
                    event = await self._ask(name)
                except AgentTuiError:
                    continue
                except BaseException as error:
                    if not is_fault(error):
                        raise
                    if name in self._failed:
                        continue
                    self._failed.add(name)
                    why = printable_line(f"{type(error).__name__}: {error}", 300)
                    event = Notice(
                        "warning", _FAILED.format(feature=feature.name, name=name, why=why)
                    )
                if event is not None:
                    found.append(event)
        return tuple(found)

    async def _ask(self, name: str) -> AgentEvent | None:
        """Call one function.

        Raises:
            TypeError: It returned something else than an event.
            Exception: Whatever it raises.
        """
        found = cast(Look, load_object(name))(self.front)
        if isawaitable(found):
            found = await found
        if found is None or isinstance(found, FeatureEvent | Notice):
            return found
        raise TypeError(f"it returned {type(found).__name__}, not a FeatureEvent or None")
