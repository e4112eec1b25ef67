"""Textual's workers, with nothing left of those that the end of the program kept from starting."""

import inspect
from typing import Any
from weakref import finalize

from textual.worker import Worker
from textual.worker_manager import WorkerManager


class ClosingWorkers(WorkerManager):
    """Closes the coroutine of a worker that was cancelled before it started.

    Otherwise, Python warns on the terminal that the coroutine was never awaited.
    """

    def add_worker(self, worker: Worker[Any], start: bool = True, exclusive: bool = True) -> None:
        """See `WorkerManager.add_worker`. A worker has no public name for what it runs."""
        work: object = vars(worker)["_work"]
        if inspect.iscoroutine(work):
            finalize(worker, work.close)  # does nothing to one that has ended
        super().add_worker(worker, start, exclusive)  # pyright: ignore[reportUnknownMemberType]
