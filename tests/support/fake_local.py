"""A model of this machine whose pull a test drives."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from agent_tui.errors import AgentTuiError, ModelFileError
from agent_tui.features.local.model import OFFERS, Offer, PullProgress
from agent_tui.features.local.offer import offer_of
from agent_tui.providers.base import ModelRef
from agent_tui.ui.options import ModelOffer

PULLED = ModelRef("local/smollm2")


class FakeLocal:
    """Stands in for what the program says of the built-in model."""

    def __init__(self, folder: Path, problem: str = "", offer: Offer = OFFERS[0]) -> None:
        self.offer = offer
        self.problem = problem
        self.folder = folder
        self.pulls = 0
        self.stops = 0
        self.may_stop = asyncio.Event()
        self.may_stop.set()
        self._on_progress: Callable[[PullProgress], None] | None = None
        self._end: asyncio.Future[ModelRef] | None = None

    @property
    def as_offer(self) -> ModelOffer:
        """It, as the screen offers it."""
        return offer_of(self)

    async def pull(self, on_progress: Callable[[PullProgress], None]) -> ModelRef:
        self.pulls += 1
        self._on_progress = on_progress
        self._end = asyncio.get_running_loop().create_future()
        try:
            return await self._end
        except asyncio.CancelledError:
            self.stops += 1
            await self.may_stop.wait()
            raise

    def tell(self, done: int, total: int | None = None, phase: str = "downloading") -> None:
        """Say how far it is."""
        assert self._on_progress is not None, "nothing is pulled"
        self._on_progress(PullProgress(phase, done, total))

    def succeed(self) -> None:
        """End the pull well."""
        assert self._end is not None, "nothing is pulled"
        self._end.set_result(PULLED)

    def fail(self, error: AgentTuiError | None = None) -> None:
        """End the pull badly."""
        assert self._end is not None, "nothing is pulled"
        self._end.set_exception(
            error
            or ModelFileError(
                "The disk is full: 98.4 MB are needed, 12.0 MB are free.",
                "Make room, or set AGENT_TUI_DATA_DIR.",
            )
        )
