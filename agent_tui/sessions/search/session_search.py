"""Full-text search over all sessions: with an index of words, or without it."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_tui.sessions.file.chunks import read_chunks
from agent_tui.sessions.listing.index import SessionFile
from agent_tui.sessions.listing.sqlite_cache import discard_if_broken
from agent_tui.sessions.listing.summary import one_line
from agent_tui.sessions.search.look import look_at
from agent_tui.sessions.search.query import Needle, needles
from agent_tui.sessions.search.word_index import FoundFile, WordIndex
from agent_tui.sessions.search.words import fold

_LOOKED_AT_BYTES = 32_000_000
"""What one search reads of the files at most: about 0.1 s."""

_UNINDEXED_BYTES = 256_000_000
"""The same where there is no index; older sessions are not found then."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A session that has what was looked for.

    `matches` counts the entries with at least one of the words in the newest part of the file
    that fits best, up to 10. `snippet` is one line of the newest entry there that has most of
    them, or the session's title where no entry was looked at.
    """

    path: Path
    matches: int
    snippet: str


class SessionSearch:
    """Search in session files, helped by an index of their words.

    Where the index cannot be used (no FTS5, a folder that cannot be written), the files
    themselves are read, the newest first, up to a limit.

    Args:
        index: The SQLite file; may be deleted at any time.
    """

    def __init__(self, index: Path) -> None:
        self._index = index

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
            with WordIndex(self._index) as index:
                index.forget_missing(files)
                waiting = index.pending(files)
                done = len(files) - len(waiting)
                for number in index.add(waiting, is_cancelled):
                    if progress is not None:
                        progress(done + number, len(files))
                return len(index.pending(files))
        except (OSError, sqlite3.Error) as error:
            discard_if_broken(self._index, error)
            return self.pending(files)

    def pending(self, files: Sequence[SessionFile]) -> int:
        """How many of `files` are not indexed as they are now."""
        if not self._index.exists():
            return len(files)
        try:
            with WordIndex(self._index) as index:
                return len(index.pending(files))
        except (OSError, sqlite3.Error):
            return len(files)

    def search(
        self, query: str, files: Callable[[], Sequence[SessionFile]], limit: int
    ) -> list[SearchHit]:
        """The sessions that have all of `query`, the best first; see `SessionStore.search`.

        Args:
            query: What was typed.
            files: Lists all sessions; asked only where there is no index.
            limit: So many hits at most.
        """
        wanted = needles(query)
        if not wanted:
            return []
        found = self._candidates(wanted)
        if found is None:
            whole = (_unindexed(file) for file in files())
            return list(_hits(whole, wanted, frozenset(), limit, _UNINDEXED_BYTES))
        found.sort(key=lambda file: (_in_title(file, wanted), file.mtime_ns), reverse=True)
        sure = frozenset(number for number, needle in enumerate(wanted) if needle.is_certain)
        return list(_hits(found, wanted, sure, limit, _LOOKED_AT_BYTES))

    def _candidates(self, wanted: Sequence[Needle]) -> list[FoundFile] | None:
        """The sessions that the index names; None where it cannot be used."""
        if not self._index.exists():
            return None
        try:
            with WordIndex(self._index) as index:
                return index.find(wanted)
        except (OSError, sqlite3.Error) as error:
            discard_if_broken(self._index, error)
            return None


def _hits(
    files: Iterable[FoundFile],
    wanted: Sequence[Needle],
    sure: frozenset[int],
    limit: int,
    most_bytes: int,
) -> Iterator[SearchHit]:
    """A hit for each of `files` that has all of `wanted`; about `most_bytes` are read at most."""
    left = most_bytes
    count = 0
    for file in files:
        if count == limit or (left <= 0 and len(sure) < len(wanted)):
            return
        pieces = _Pieces(file, left)
        look = look_at(pieces, wanted, sure)
        left -= pieces.size_bytes
        if len(look.found | sure) == len(wanted):
            count += 1
            yield SearchHit(file.path, look.matches, look.snippet or one_line(file.title))


class _Pieces:
    """The parts of a file that are to be looked at, and how many bytes of it were read."""

    def __init__(self, file: FoundFile, most_bytes: int) -> None:
        self._file = file
        self._most_bytes = most_bytes
        self.size_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        with suppress(OSError):
            for data in self._read():
                self.size_bytes += len(data)
                yield data
                if self.size_bytes >= self._most_bytes:
                    return

    def _read(self) -> Iterator[bytes]:
        if self._most_bytes <= 0:
            return
        if not self._file.places:
            yield from read_chunks(self._file.path)
            return
        with self._file.path.open("rb", buffering=0) as opened:
            for part in self._file.parts:
                opened.seek(part.start)
                yield opened.read(part.stop - part.start)


def _unindexed(file: SessionFile) -> FoundFile:
    return FoundFile(os.fsencode(file.path), file.mtime_ns, "", {})


def _in_title(file: FoundFile, wanted: Sequence[Needle]) -> int:
    """How many of `wanted` the session's name or first prompt has."""
    title = fold(file.title)
    likely = [needle for needle in wanted if needle.text in title]
    return sum(needle.pattern.search(title) is not None for needle in likely)
