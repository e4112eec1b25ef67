"""A session that was left while its turn waited for a usage limit to reset."""

import asyncio
from pathlib import Path

from agent_tui.events import LimitWaitStarted
from agent_tui.features.tour.scripted import Reply
from agent_tui.providers.base import ProviderError
from tests.support.runtime import Stage
from tests.support.wall_clock import SleptClock


async def leave_waiting(stage: Stage, clock: SleptClock, wait_s: float) -> Path:
    """Begin a turn, end the program as it waits for `wait_s` seconds; returns the session."""
    limited = ProviderError("rate_limit", "Too fast.", retry_after_s=wait_s)
    runtime = stage.runtime([Reply(error=limited)], sleep=_until_cancelled, limit_wait_h=12)
    runtime.services.wall_clock = clock.read
    async for event in runtime.submit("count the files"):
        if isinstance(event, LimitWaitStarted):
            runtime.abort(ends_wait=False)
    path = runtime.conversation.log.path
    assert path is not None
    await runtime.aclose()
    return path


async def _until_cancelled(_seconds: float) -> None:
    await asyncio.Event().wait()
