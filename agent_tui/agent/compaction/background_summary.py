"""The next summary, written while the work goes on."""

import asyncio
import contextlib

from agent_tui.compaction.draft import AheadSummary, CompactionRequest, Draft, ModelsPart
from agent_tui.compaction.model_client import OnUsage
from agent_tui.compaction.service import CompactionService
from agent_tui.errors import AgentTuiError


class BackgroundSummary:
    """At most one summary in the making or made; whoever compacts may take it.

    It is made from a snapshot of the conversation. Whether it still fits is for the one to
    decide who takes it: see `Draft.can_take_prose_of`.
    """

    def __init__(self, service: CompactionService) -> None:
        self._service = service
        self._task: asyncio.Task[ModelsPart | None] | None = None
        self._draft: asyncio.Future[Draft | None] | None = None
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

    async def ahead(self) -> AheadSummary | None:
        """What it is the prose of, which takes no model, and how to wait for it.

        None where there is no summary.
        """
        draft = await asyncio.shield(self._draft) if self._draft is not None else None
        return AheadSummary(draft, self._written) if draft is not None else None

    def begin(self, request: CompactionRequest, on_usage: OnUsage) -> None:
        """Write the summary of `request` in the background, in place of any other.

        Not where the tiers alone would do.

        Args:
            request: The snapshot.
            on_usage: Told of every request that was paid for, whatever comes of it.
        """
        self.drop()
        self.begun_at_tokens = request.tokens_before
        self._draft = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._write(request, self._draft, on_usage))

    async def _written(self) -> ModelsPart | None:
        """The summary, waited for; None where there is none to be had."""
        return await asyncio.shield(self._task) if self._task is not None else None

    def drop(self) -> None:
        """Forget it, and stop writing it."""
        if self._task is not None:
            self._task.cancel()
        self._task = self._draft = None
        self.begun_at_tokens = 0

    async def aclose(self) -> None:
        """Stop, and wait until it has stopped."""
        task = self._task
        self.drop()
        if task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _write(
        self,
        request: CompactionRequest,
        settled: asyncio.Future[Draft | None],
        on_usage: OnUsage,
    ) -> ModelsPart | None:
        try:
            if not await asyncio.to_thread(self._service.needs_summary, request):
                return None
            draft = await asyncio.to_thread(self._service.draft, request)
            settled.set_result(draft)
            return await self._service.write_ahead(request, draft, on_usage)
        except AgentTuiError:
            return None  # the compaction itself will try again, and say what is wrong
        finally:
            if not settled.done():
                settled.set_result(None)


def _result_of(
    task: "asyncio.Task[ModelsPart | None]",
) -> ModelsPart | None:
    return None if task.cancelled() or task.exception() is not None else task.result()
