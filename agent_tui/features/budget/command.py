"""``/budget``: what is spent, and of how much."""

import asyncio

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front
from agent_tui.errors import ConfigError
from agent_tui.features.budget.limits import DayLimit
from agent_tui.features.budget.part import limits_of

_NONE = "No budget is set. /settings has budget_session and budget_day."


@command()
async def budget(front: Front, _argument: str) -> None:
    """Show what is left of the budgets for this session and today."""
    lines: list[str] = []
    for limit in limits_of(front.runtime.conversation):
        if not limit.is_set:
            continue
        try:
            if isinstance(limit, DayLimit):
                await asyncio.to_thread(limit.look)
            lines.append(f"{limit.state()}.")
        except ConfigError as error:
            lines.append(str(error))
    front.say("\n".join(lines) or _NONE)
