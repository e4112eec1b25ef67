"""While nothing runs: the model is asked what to keep, just before the cached prefix dies."""

import asyncio
from collections.abc import Callable

from agent_tui.agent.compaction.compactor import Compactor
from agent_tui.providers.retry import Sleep


class Pause:
    """The time between two activities; asks at most once in each."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def begin(self, compactor: Compactor, sleep: Sleep, is_open: Callable[[], bool]) -> None:
        """An activity ended. Does nothing where the settings or the price are against it.

        Args:
            compactor: Of the present conversation.
            sleep: Waits for so many seconds.
            is_open: Whether that conversation is still the present one.
        """
        self.end()
        wait_s = compactor.seconds_to_ask_in_pause()
        if wait_s is not None:
            self._task = asyncio.create_task(_ask_after(wait_s, compactor, sleep, is_open))

    def end(self) -> None:
        """Something runs again, or the program ends; an answer that is there stays."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


async def _ask_after(
    wait_s: float, compactor: Compactor, sleep: Sleep, is_open: Callable[[], bool]
) -> None:
    await sleep(wait_s)
    if is_open():
        await compactor.ask_in_pause()
