"""Ask the model in advance what the next compaction should keep, and hold its answer."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from agent_tui.compaction.curation.answer import KeepChoice
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.request import CompactionRequest
from agent_tui.errors import AgentTuiError
from agent_tui.providers.client import OnUsage
from agent_tui.providers.limits import Sleep


class BackgroundSummary:
    """Holds at most one choice, being made or finished, which the next compaction may use.

    The choice is made from a snapshot of the conversation. The caller decides whether it still
    fits.
    """

    def __init__(self, planner: CompactionPlanner) -> None:
        self._planner = planner
        self._asked: _Asked | None = None
        self.begun_at_tokens = 0
        """Tokens in use when the last choice was requested."""

    @property
    def is_there(self) -> bool:
        """Whether a choice is being made or finished."""
        asked = self._asked
        return asked is not None and not (asked.is_decided.is_set() and asked.choice is None)

    @property
    def is_made(self) -> bool:
        """Whether there is a choice, so that nobody has to wait for it."""
        return self._asked is not None and self._asked.choice is not None

    @property
    def ahead(self) -> Callable[[], Awaitable[KeepChoice | None]] | None:
        """Returns the function that waits for the choice; None if there is none."""
        return self._asked.wait if self._asked is not None and self.is_there else None

    def begin(self, request: CompactionRequest, on_usage: OnUsage) -> None:
        """Ask for the choice for `request` in the background, replacing any earlier one.

        Callers do not use it when the tiers alone free enough.

        Args:
            request: The snapshot.
            on_usage: Called with the usage of every paid request, even if no choice results.
        """
        self.drop()
        self.begun_at_tokens = request.sizes.used
        self._asked = _Asked(self._planner, request, on_usage)

    def drop(self) -> None:
        """Discard the choice and cancel the request for it."""
        if self._asked is not None:
            self._asked.task.cancel()
        self._asked = None
        self.begun_at_tokens = 0

    async def aclose(self) -> None:
        """Cancel the request and wait until it has ended."""
        asked = self._asked
        self.drop()
        if asked is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asked.task


class _Asked:
    """One question in the background, and the best answer to it so far."""

    def __init__(
        self, planner: CompactionPlanner, request: CompactionRequest, on_usage: OnUsage
    ) -> None:
        self.choice: KeepChoice | None = None
        self.is_decided = asyncio.Event()
        """There is a choice, or there will be none."""

        self.task = asyncio.create_task(self._ask(planner, request, on_usage))

    async def wait(self) -> KeepChoice | None:
        """Wait for the choice, but not for additions to it; None if the model gave none."""
        await self.is_decided.wait()
        return self.choice

    def _take(self, choice: KeepChoice | None) -> None:
        self.choice = choice
        self.is_decided.set()

    async def _ask(
        self, planner: CompactionPlanner, request: CompactionRequest, on_usage: OnUsage
    ) -> None:
        try:
            self._take(await planner.choose_ahead(request, on_usage, self._take))
        except AgentTuiError:
            pass  # the compaction itself asks again and reports what is wrong
        finally:
            self.is_decided.set()


class Pause:
    """The time between two activities, in which the model is asked at most once."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def begin(
        self,
        wait_s: float | None,
        ask: Callable[[], Awaitable[None]],
        sleep: Sleep,
        is_open: Callable[[], bool],
    ) -> None:
        """Start the timer after an activity.

        Args:
            wait_s: Seconds until the model is asked; None not to ask it in this pause.
            ask: Asks the model, if that is still worth it.
            sleep: Waits for the given number of seconds.
            is_open: Whether the conversation is still the present one.
        """
        self.end()
        if wait_s is not None:
            self._task = asyncio.create_task(_ask_after(wait_s, ask, sleep, is_open))

    def end(self) -> None:
        """Stop the timer as an activity starts or the program ends; keeps a finished answer."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


async def _ask_after(
    wait_s: float,
    ask: Callable[[], Awaitable[None]],
    sleep: Sleep,
    is_open: Callable[[], bool],
) -> None:
    await sleep(wait_s)
    if is_open():
        await ask()
