"""The project's files for completion: listed in a thread, cached, and listed again as needed."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path

from agent_tui.ui.prompt.ranking import PathCatalog, fold_path, rank_paths

MAX_FILES = 250_000
_MAX_AGE_S = 3.0
_MAX_EFFORT = 5
"""A list older than this times the duration of listing is shown at once and read again."""
_MIN_AGE_S = 1.0
"""A newer list is never read again."""
_PARTIAL_EVERY_S = 0.25
"""Interval at which partial results of a slow first listing are shown."""

ListFiles = Callable[[Path, int], Iterable[str]]


class FileIndex:
    """Relative paths of the files and folders under one folder.

    Args:
        root: Returns the folder, which changes with the session.
        list_files: Lists up to a number of relative paths; runs in a thread.
        clock: Monotonic seconds.
    """

    def __init__(
        self, root: Callable[[], Path], list_files: ListFiles, clock: Callable[[], float]
    ) -> None:
        self._root = root
        self._list_files = list_files
        self._clock = clock
        self._listed: Path | None = None
        self._catalog = PathCatalog()
        self._read_at: float | None = None
        self._took_s = 0.0
        self._reading: asyncio.Task[None] | None = None
        self._query: object = None
        self._is_closed = False

    @property
    def root(self) -> Path:
        """The folder that paths are relative to."""
        return self._root()

    async def answers(self, typed: str, limit: int) -> AsyncGenerator[tuple[str, ...], None]:
        """The best paths for `typed`: from those known at once, then again with more."""
        self._query = query = object()
        self._begin_reading_if_stale()
        is_first = self._read_at is None
        shown = None
        while True:
            reading = self._reading
            if is_first and reading is not None:
                await asyncio.wait({reading}, timeout=_PARTIAL_EVERY_S)
                reading = self._reading
            found = await asyncio.to_thread(
                rank_paths, self._catalog, typed, limit, lambda: self._query is query
            )
            if self._query is not query:
                return
            if found != shown:
                yield found
                shown = found
            if reading is None and not self._is_worth_a_look(typed, found):
                return
            if reading is None:
                self._begin_reading()
            if not is_first:
                await self.settle()

    async def settle(self) -> None:
        """Wait for a running listing."""
        if self._reading is not None:
            await asyncio.wait({self._reading})

    async def aclose(self) -> None:
        """Stop a running listing."""
        self._is_closed = True
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def _begin_reading_if_stale(self) -> None:
        root = self.root
        if root != self._listed and self._reading is None:
            self._listed, self._catalog, self._read_at = root, PathCatalog(), None
        max_age_s = max(_MAX_AGE_S, _MAX_EFFORT * self._took_s)
        is_stale = self._read_at is None or self._clock() - self._read_at > max_age_s
        if is_stale and self._reading is None:
            self._begin_reading()

    def _begin_reading(self) -> None:
        # The first list is shown while it grows; a later one replaces it when it is complete.
        catalog = self._catalog if self._read_at is None else PathCatalog()
        self._reading = asyncio.create_task(self._read(self.root, catalog))

    def _is_worth_a_look(self, typed: str, found: tuple[str, ...]) -> bool:
        """Whether the typed text may be a new file: no path matches, and the list is not new."""
        wanted = fold_path(typed)
        if any(wanted in fold_path(path) for path in found) or self._read_at is None:
            return False
        return self._clock() - self._read_at > max(_MIN_AGE_S, 2 * self._took_s)

    async def _read(self, root: Path, catalog: PathCatalog) -> None:
        began_at = self._clock()
        try:
            await asyncio.to_thread(self._fill, root, catalog)
        except OSError:
            pass  # a folder that cannot be read has nothing to offer
        finally:
            self._catalog = catalog
            self._read_at = self._clock()
            self._took_s = self._read_at - began_at
            self._reading = None

    def _fill(self, root: Path, catalog: PathCatalog) -> None:
        for _ in catalog.fill(self._list_files(root, MAX_FILES)):
            if self._is_closed:
                return
