"""What the next compaction is to keep, asked while the work goes on."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from agent_tui.compaction.curation.answer import Choice
from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import OnUsage
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.errors import AgentTuiError


class BackgroundSummary:
    """At most one choice in the making or made; whoever compacts may take it.

    It is made from a snapshot of the conversation. Whether it still fits is for the one to
    decide who takes it.
    """

    def __init__(self, planner: CompactionPlanner) -> None:
        self._planner = planner
        self._task: asyncio.Task[Choice | None] | None = None
        self.begun_at_tokens = 0
        """Size of the conversation it was last begun for."""

    @property
    def is_there(self) -> bool:
        """Whether it is in the making or made."""
        task = self._task
        return task is not None and (not task.done() or _result_of(task) is not None)

    @property
    def is_made(self) -> bool:
        """Whether it need not be waited for."""
        task = self._task
        return task is not None and task.done() and _result_of(task) is not None

    @property
    def ahead(self) -> Callable[[], Awaitable[Choice | None]] | None:
        """How to wait for it; None where there is none."""
        return self._made if self.is_there else None

    def begin(self, request: CompactionRequest, on_usage: OnUsage) -> None:
        """Ask for `request` in the background, in place of any other.

        Not where the tiers alone would do.

        Args:
            request: The snapshot.
            on_usage: Told of every request that was paid for, whatever comes of it.
        """
        self.drop()
        self.begun_at_tokens = request.tokens_before
        self._task = asyncio.create_task(self._ask(request, on_usage))

    async def _made(self) -> Choice | None:
        """The choice, waited for; None where there is none to be had."""
        return await asyncio.shield(self._task) if self._task is not None else None

    def drop(self) -> None:
        """Forget it, and stop asking."""
        if self._task is not None:
            self._task.cancel()
        self._task = None
        self.begun_at_tokens = 0

    async def aclose(self) -> None:
        """Stop, and wait until it has stopped."""
        task = self._task
        self.drop()
        if task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _ask(self, request: CompactionRequest, on_usage: OnUsage) -> Choice | None:
        try:
            return await self._planner.choose_ahead(request, on_usage)
        except AgentTuiError:
            return None  # the compaction itself will try again, and say what is wrong


def _result_of(task: "asyncio.Task[Choice | None]") -> Choice | None:
    return None if task.cancelled() or task.exception() is not None else task.result()
