"""Full-text search over all sessions, with an index on disk or, failing that, in memory."""

import sqlite3
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from agent_tui.sessions.listing import SessionFile, discard_if_broken
from agent_tui.sessions.search.word_index import SearchHit, WordIndex, search_terms

_MOST_BYTES_AT_ONCE = 64_000_000
"""Most bytes indexed while the user waits: about 2 s. Older sessions are not found then."""


class SessionSearch:
    """Searches session files with an index of their words.

    If the index cannot be written, one in memory covers the newest sessions.

    Args:
        index: The SQLite file; may be deleted at any time.
    """

    def __init__(self, index: Path) -> None:
        self._path = index
        self._lock = threading.Lock()
        self._in_memory: WordIndex | None = None

    def update(
        self,
        files: Sequence[SessionFile],
        progress: Callable[[int, int], None] | None,
        is_cancelled: Callable[[], bool],
    ) -> int:
        """Index what is new in `files`; see `SessionStore.update_search`."""
        if not files:
            return 0
        try:
            with self._index() as index:
                index.forget_missing(files)
                waiting = index.pending(files)
                done = len(files) - len(waiting)
                most_bytes = _MOST_BYTES_AT_ONCE if index.is_in_memory else None
                for number in index.add(waiting, is_cancelled, most_bytes):
                    if progress is not None:
                        progress(done + number, len(files))
                return len(index.pending(files))
        except (OSError, sqlite3.Error) as error:
            discard_if_broken(self._path, error)
            return self.pending(files)

    def pending(self, files: Sequence[SessionFile]) -> int:
        """The number of `files` whose present version is not indexed."""
        try:
            with self._index() as index:
                return len(index.pending(files))
        except (OSError, sqlite3.Error):
            return len(files)

    def search(self, query: str, limit: int) -> list[SearchHit]:
        """The sessions that contain all of `query`, best first; see `SessionStore.search`."""
        terms = search_terms(query)
        if not terms:
            return []
        try:
            with self._index() as index:
                return index.find(terms, limit)
        except (OSError, sqlite3.Error) as error:
            discard_if_broken(self._path, error)
            return []

    def search_among(
        self, query: str, files: Sequence[SessionFile], limit: int
    ) -> tuple[Sequence[SearchHit], int]:
        """Those of `files` that contain all of `query`, and how many could not be searched.

        New contents are indexed first, up to the limit on bytes.

        Args:
            query: The typed text.
            files: Newest first.
            limit: Most hits.
        """
        terms = search_terms(query)
        if not terms:
            return (), 0
        try:
            with self._index() as index:
                for _ in index.add(index.pending(files), bool, _MOST_BYTES_AT_ONCE):
                    pass
                hits = index.find(terms, limit, {file.path for file in files})
                return hits, len(index.pending(files))
        except (OSError, sqlite3.Error) as error:
            discard_if_broken(self._path, error)
            return (), len(files)

    @contextmanager
    def _index(self) -> Generator[WordIndex]:
        """The index on disk or, if that is impossible, the one in memory.

        Raises:
            OSError, sqlite3.Error: It cannot be used.
        """
        index = self._on_disk()
        if index is not None:
            with closing(index):
                yield index
            return
        with self._lock:
            self._in_memory = self._in_memory or WordIndex(None)
            yield self._in_memory

    def _on_disk(self) -> WordIndex | None:
        for _ in range(2):  # a damaged one is deleted and created again
            try:
                return WordIndex(self._path)
            except (OSError, sqlite3.Error) as error:
                discard_if_broken(self._path, error)
        return None
