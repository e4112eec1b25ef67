"""Full-text search over all sessions: with an index of words, or without it."""

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path

from agent_tui.attachments import without_tags
from agent_tui.markdown_text import markdown_words
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_text import printable_line
from agent_tui.sessions.file.chunks import MAX_LINE_BYTES, read_chunks
from agent_tui.sessions.listing.index import SessionFile
from agent_tui.sessions.listing.sqlite_cache import discard_if_broken
from agent_tui.sessions.search.records import load_record, markdown_length, record_text
from agent_tui.sessions.search.word_index import FoundFile, WordIndex
from agent_tui.text_search import (
    WordTerm,
    fold,
    may_hold_accents,
    unfolded_place,
    word_terms,
)

_SCANNED_BYTES = 32_000_000
"""What one search reads of the files at most: about 0.1 s."""

_UNINDEXED_BYTES = 256_000_000
"""The same where there is no index; older sessions are not found then."""

_MOST_MATCHES = 10
"""More matching entries of one session are not counted."""

_CHARS_BEFORE, _CHARS_SHOWN = 40, 160
_MOST_MARKDOWN = 4_000
"""Characters of a reply that are parsed for one snippet."""

_ESCAPED = re.compile(rb"\\u(?:00[c-f]|0[12]|03[0-6]|1e|212|f[bf])", re.IGNORECASE)
"""Such letters, escaped by another program."""


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
            with closing(WordIndex(self._index)) as index:
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
        return len(self._pending(files))

    def _pending(self, files: Sequence[SessionFile]) -> Sequence[SessionFile]:
        if not self._index.exists():
            return files
        try:
            with closing(WordIndex(self._index)) as index:
                return index.pending(files)
        except (OSError, sqlite3.Error):
            return files

    def search(
        self, query: str, files: Callable[[], Sequence[SessionFile]], limit: int
    ) -> list[SearchHit]:
        """The sessions that have all of `query`, the best first; see `SessionStore.search`.

        Args:
            query: What was typed.
            files: Lists all sessions; asked only where there is no index.
            limit: So many hits at most.
        """
        wanted = word_terms(query)
        if not wanted:
            return []
        found = self._candidates(wanted)
        if found is None:
            whole = (_unindexed(file) for file in files())
            return list(_hits(whole, wanted, frozenset(), limit, _UNINDEXED_BYTES))
        return list(_indexed_hits(found, wanted, limit))

    def search_among(
        self, query: str, files: Sequence[SessionFile], limit: int
    ) -> tuple[Sequence[SearchHit], int]:
        """Those of `files` that have all of `query`, and how many could not be looked at.

        What is not indexed as it is now is read, the newest first, as far as the limit on bytes
        reaches; the index answers for the rest.

        Args:
            query: What was typed.
            files: Newest first.
            limit: So many hits at most.
        """
        wanted = word_terms(query)
        if not wanted:
            return (), 0
        pending = self._pending(files)
        begins = accumulate((file.size_bytes for file in pending), initial=0)
        late = sum(begin >= _UNINDEXED_BYTES for begin in islice(begins, len(pending)))
        whole = map(_unindexed, pending)
        hits = list(_hits(whole, wanted, frozenset(), limit, _UNINDEXED_BYTES))
        known = {os.fsencode(file.path) for file in files}
        known -= {os.fsencode(file.path) for file in pending}
        found = [file for file in self._candidates(wanted) or () if file.encoded_path in known]
        return (*hits, *_indexed_hits(found, wanted, limit - len(hits))), late

    def _candidates(self, wanted: Sequence[WordTerm]) -> list[FoundFile] | None:
        """The sessions that the index names; None where it cannot be used."""
        if not self._index.exists():
            return None
        try:
            with closing(WordIndex(self._index)) as index:
                return index.find(wanted)
        except (OSError, sqlite3.Error) as error:
            discard_if_broken(self._index, error)
            return None


def _indexed_hits(
    found: Iterable[FoundFile], wanted: Sequence[WordTerm], limit: int
) -> Iterator[SearchHit]:
    """A hit for each of `found` that has all of `wanted`: by title first, then the newest."""
    ordered = sorted(found, key=lambda file: (_in_title(file, wanted), file.mtime_ns), reverse=True)
    sure = frozenset(number for number, term in enumerate(wanted) if term.is_certain)
    return _hits(ordered, wanted, sure, limit, _SCANNED_BYTES)


def _hits(
    files: Iterable[FoundFile],
    wanted: Sequence[WordTerm],
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
        chunks = _FileChunks(file, left)
        scan = _scan(chunks, wanted, sure)
        left -= chunks.size_bytes
        if len(scan.found | sure) == len(wanted):
            count += 1
            yield SearchHit(file.path, scan.matches, scan.snippet or printable_line(file.title))


class _FileChunks:
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
            yield from (chunk.data for chunk in read_chunks(self._file.path))
            return
        with open_regular_file(self._file.path, buffering=0) as opened:
            for part in self._file.parts:
                # A line that is too long stands first in its part.
                opened.seek(max(part.start, part.stop - MAX_LINE_BYTES))
                yield opened.read(part.stop - opened.tell())


def _unindexed(file: SessionFile) -> FoundFile:
    return FoundFile(os.fsencode(file.path), file.mtime_ns, "", {})


def _in_title(file: FoundFile, wanted: Sequence[WordTerm]) -> int:
    """How many of `wanted` the session's name or first prompt has."""
    title = fold(file.title)
    likely = [term for term in wanted if term.text in title]
    return sum(term.pattern.search(title) is not None for term in likely)


@dataclass(frozen=True, slots=True)
class _Scan:
    """What was found: numbers of the terms, matching entries, the best one's surroundings."""

    found: frozenset[int] = frozenset()
    matches: int = 0
    snippet: str = ""


def _scan(chunks: Iterable[bytes], wanted: Sequence[WordTerm], sure: frozenset[int]) -> _Scan:
    """Look for `wanted` in `chunks` of whole lines, in each from the end to the beginning.

    Ends after the piece in which something was found, once all that are not `sure` (known to
    occur) were. The snippet is of the entry with most of the terms; of those with as many the
    first that is come to.
    """
    sieve = _Sieve(wanted, sure)
    found: set[int] = set()
    matches, most, best = 0, 0, _Place()
    for data in chunks:
        for line in sieve.likely_lines(data):
            record = load_record(line) or {}
            text = record_text(record)
            places = _places(text, wanted)
            found |= places.keys()
            matches += bool(places)
            if len(places) > most:
                most = len(places)
                best = _Place(text, min(places.values()), markdown_length(record))
            if matches >= _MOST_MATCHES and len(found | sure) == len(wanted):
                break
        if matches and len(found | sure) == len(wanted):
            break
    return _Scan(frozenset(found), matches, _snippet(_rendered(best, wanted)))


class _Sieve:
    """Tells by the bytes alone which lines may hold something wanted.

    A word may be spelt with accents, as an escape, or in another script; lines that hold such
    letters may hold anything.
    """

    def __init__(self, wanted: Sequence[WordTerm], sure: frozenset[int]) -> None:
        self._raw = tuple(term.raw for term in wanted)
        self._unsure = tuple(raw for number, raw in enumerate(self._raw) if number not in sure)
        self._is_ascii = all(map(bytes.isascii, self._raw))

    def likely_lines(self, data: bytes) -> Iterator[bytes]:
        """The lines of `data` to read, the last first; none where all that is unsure is absent."""
        lowered = data.lower()
        may_be_odd = self._may_be_odd(data)
        if self._unsure and not may_be_odd and not _has_one(lowered, self._unsure):
            return
        lines = zip(data.split(b"\n")[::-1], lowered.split(b"\n")[::-1], strict=True)
        for line, low in lines:
            if _has_one(low, self._raw) or (may_be_odd and self._may_be_odd(line)):
                yield line

    def _may_be_odd(self, data: bytes) -> bool:
        if may_hold_accents(data) or not (self._is_ascii or data.isascii()):
            return True
        return b"\\u" in data and (not self._is_ascii or _ESCAPED.search(data) is not None)


def _has_one(data: bytes, wanted: Sequence[bytes]) -> bool:
    return any(map(data.__contains__, wanted))


def _places(text: str, wanted: Sequence[WordTerm]) -> dict[int, int]:
    """Where in the folded `text` each term begins first, by its number."""
    folded = fold(text)
    places = ((number, term.place_in(folded)) for number, term in enumerate(wanted))
    return {number: place for number, place in places if place is not None}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in `text` something was found, in characters of the folded text.

    The first `markdown_length` characters of the text are Markdown. `is_part`: there is more of the
    text before it.
    """

    text: str = ""
    folded: int = 0
    markdown_length: int = 0
    is_part: bool = False


def _rendered(found: _Place, wanted: Sequence[WordTerm]) -> _Place:
    """`found` in the lines around it as they read once drawn, if it is in them then."""
    at = unfolded_place(found.text, found.folded)
    if at >= found.markdown_length:
        return found
    said = found.text[: found.markdown_length]
    start = said.rfind("\n", 0, max(at - _CHARS_SHOWN, 0)) + 1
    end = said.find("\n", at + 2 * _CHARS_SHOWN)
    text = markdown_words(said[start : end if end >= 0 else None][:_MOST_MARKDOWN])
    places = _places(text, wanted)
    return _Place(text, min(places.values()), is_part=start > 0) if places else found


def _snippet(found: _Place) -> str:
    """One line of the text around what was found."""
    text = found.text
    at = unfolded_place(text, found.folded)
    start = max(at - _CHARS_BEFORE, 0)
    if start:
        start = next((i + 1 for i in range(start, at) if text[i].isspace()), start)
    part = without_tags(text, start, start + 4 * _CHARS_SHOWN)
    shown = printable_line(part, _CHARS_SHOWN)
    return f"…{shown}" if (start or found.is_part) and shown else shown
