"""The project's files for ``@`` completion: listed in a thread, kept, ranked with rapidfuzz."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

MAX_FILES = 100_000
MAX_AGE_S = 15.0
"""A list older than this is shown at once and read anew behind it."""

ListFiles = Callable[[Path, int], Iterable[str]]


class FileIndex:
    """Relative paths of the files under one folder.

    Args:
        root: The folder.
        list_files: Lists at most so many relative paths; runs in a thread.
        clock: Monotonic seconds.
    """

    def __init__(self, root: Path, list_files: ListFiles, clock: Callable[[], float]) -> None:
        self._root = root
        self._list_files = list_files
        self._clock = clock
        self._paths: tuple[str, ...] = ()
        self._read_at: float | None = None
        self._reading: asyncio.Task[None] | None = None

    async def search(self, typed: str, limit: int) -> tuple[str, ...]:
        """The paths that match `typed` best; the shortest ones if nothing is typed.

        Waits for the first listing; later a list that is too old is read anew meanwhile.
        """
        if self._is_stale and self._reading is None:
            self._reading = asyncio.create_task(self._read())
        if self._read_at is None:
            await self.settle()
        return await asyncio.to_thread(rank_paths, self._paths, typed, limit)

    async def settle(self) -> None:
        """Wait for a listing under way."""
        if self._reading is not None:
            await asyncio.shield(self._reading)

    async def aclose(self) -> None:
        """Stop a listing under way."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    @property
    def _is_stale(self) -> bool:
        return self._read_at is None or self._clock() - self._read_at > MAX_AGE_S

    async def _read(self) -> None:
        try:
            self._paths = await asyncio.to_thread(
                lambda: tuple(self._list_files(self._root, MAX_FILES))
            )
        except OSError:
            self._paths = ()
        finally:
            self._read_at = self._clock()
            self._reading = None


def rank_paths(paths: tuple[str, ...], typed: str, limit: int) -> tuple[str, ...]:
    """Best matches of `typed` among `paths`; a match in the file's name counts most.

    Plain containment is tried first, as it is what people mean and quick; what is left of
    `limit` is filled by rapidfuzz's partial ratio, so that typing errors still find the file.
    """
    if not typed:
        return tuple(sorted(paths, key=lambda path: (path.count("/"), path)))[:limit]
    wanted = typed.lower()
    inside = [path for path in paths if wanted in path.lower()]
    inside.sort(
        key=lambda path: (
            not _name(path).startswith(wanted),
            wanted not in _name(path),
            len(path),
            path,
        )
    )
    best = inside[:limit]
    if len(best) < limit and len(typed) >= 3:
        from rapidfuzz import fuzz, process  # 20 ms to import, and only needed here

        close = process.extract(
            wanted,
            paths,
            scorer=fuzz.partial_ratio,
            processor=str.lower,
            limit=limit,
            score_cutoff=75,
        )
        known = set(best)
        best += [path for path, _, _ in close if path not in known]
    return tuple(best[:limit])


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].lower()
