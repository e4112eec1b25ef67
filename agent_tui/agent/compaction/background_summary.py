"""Ask a model in advance, in the background, what the next compaction should keep."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from agent_tui.compaction.curation.answer import Choice
from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import OnUsage
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.errors import AgentTuiError


class BackgroundSummary:
    """Holds at most one choice, being made or finished, which the next compaction may use.

    The choice is made from a snapshot of the conversation. The caller decides whether it still
    fits.
    """

    def __init__(self, planner: CompactionPlanner) -> None:
        self._planner = planner
        self._task: asyncio.Task[Choice | None] | None = None
        self.begun_at_tokens = 0
        """Tokens in use when the last choice was requested."""

    @property
    def is_there(self) -> bool:
        """Whether a choice is being made or finished."""
        task = self._task
        return task is not None and (not task.done() or _result_of(task) is not None)

    @property
    def is_made(self) -> bool:
        """Whether the choice is finished, so that nobody has to wait for it."""
        task = self._task
        return task is not None and task.done() and _result_of(task) is not None

    @property
    def ahead(self) -> Callable[[], Awaitable[Choice | None]] | None:
        """Returns the function that waits for the choice; None if there is none."""
        return self._wait_for_choice if self.is_there else None

    def begin(self, request: CompactionRequest, on_usage: OnUsage) -> None:
        """Ask for the choice for `request` in the background, replacing any earlier one.

        Callers do not use it when the tiers alone free enough.

        Args:
            request: The snapshot.
            on_usage: Called with the usage of every paid request, even if no choice results.
        """
        self.drop()
        self.begun_at_tokens = request.tokens_before
        self._task = asyncio.create_task(self._ask(request, on_usage))

    async def _wait_for_choice(self) -> Choice | None:
        """Wait for the choice; None if there is none or the model gave none."""
        return await asyncio.shield(self._task) if self._task is not None else None

    def drop(self) -> None:
        """Discard the choice and cancel the request for it."""
        if self._task is not None:
            self._task.cancel()
        self._task = None
        self.begun_at_tokens = 0

    async def aclose(self) -> None:
        """Cancel the request and wait until it has ended."""
        task = self._task
        self.drop()
        if task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _ask(self, request: CompactionRequest, on_usage: OnUsage) -> Choice | None:
        try:
            return await self._planner.choose_ahead(request, on_usage)
        except AgentTuiError:
            return None  # the compaction itself asks again and reports what is wrong


def _result_of(task: "asyncio.Task[Choice | None]") -> Choice | None:
    return None if task.cancelled() or task.exception() is not None else task.result()
