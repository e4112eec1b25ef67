"""An index of the words of all sessions in SQLite; it may be deleted, broken or locked."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from agent_tui.safe_text import printable_line
from agent_tui.sessions.file.chunks import Chunk, checksum, read_chunks
from agent_tui.sessions.gc_pause import garbage_collection_paused
from agent_tui.sessions.listing.index import SessionFile
from agent_tui.sessions.listing.sqlite_cache import open_database
from agent_tui.sessions.search.records import load_record, record_text, title_part
from agent_tui.text_search import WordTerm, words_of

PART_BYTES = 128_000
"""So much of a file is one row; where a word occurs is known as exactly as this."""

BATCH_BYTES = 8_000_000
"""So much is indexed in one go, and lost when the program is stopped meanwhile."""

_SCHEMA_VERSION = 1
_BUSY_TIMEOUT_S = 0.2
_HASH_BYTES = 32_000_000
"""Memory FTS5 collects words in before it writes: its default of 1 MB takes half as long again."""
_MOST_DEAD_PARTS = 2_000
_SCHEMA = (
    "DROP TABLE IF EXISTS files",
    "DROP TABLE IF EXISTS parts",
    "DROP TABLE IF EXISTS words",
    "CREATE TABLE files (id INTEGER PRIMARY KEY, path BLOB UNIQUE NOT NULL, size INTEGER NOT NULL,"
    " mtime_ns INTEGER NOT NULL, done INTEGER NOT NULL, crc INTEGER NOT NULL, name TEXT NOT NULL,"
    " prompt TEXT NOT NULL)",
    "CREATE TABLE parts (id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL,"
    " start INTEGER NOT NULL, stop INTEGER NOT NULL)",
    "CREATE INDEX parts_file ON parts (file)",
    "CREATE VIRTUAL TABLE words USING fts5(word, content='', detail='none', columnsize=0,"
    " tokenize='ascii')",
    f"INSERT INTO words(words, rank) VALUES ('hashsize', {_HASH_BYTES})",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)

_Place: TypeAlias = tuple[int, int, int]
"""A part of a file: its number (newer ones have higher ones), its first byte, the byte after it."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A run of whole lines of a file, in bytes."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class _FileState:
    """How far a file is indexed: `done` bytes, whole lines, with the checksum `crc`.

    `size` and `mtime_ns` are the file's when all of it was; `size` is -1 until then. `name` and
    `prompt` are the session's name and the beginning of its first prompt.
    """

    size: int = -1
    mtime_ns: int = 0
    done: int = 0
    crc: int = -1
    name: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class _PartWords:
    """The different words of a part, folded, with spaces between them."""

    place: FilePart
    words: str


@dataclass(frozen=True, slots=True)
class _FileChange:
    """A step from what is known of a file to what it holds.

    `starts_anew`: what is known is of no use, the file was rewritten.
    """

    path: Path
    before: _FileState | None
    after: _FileState
    starts_anew: bool
    parts: tuple[_PartWords, ...]

    @property
    def size_bytes(self) -> int:
        """How much of the file it covers."""
        return sum(part.place.stop - part.place.start for part in self.parts)


def _file_changes(file: SessionFile, known: _FileState | None) -> Iterator[_FileChange]:
    """The steps from `known` to all whole lines of `file`, each of at most some megabytes.

    A file that cannot be read has none: it stays as it was.
    """
    before, after = known, known or _FileState()
    starts_anew = known is None or not _continues(file, known)
    if starts_anew:
        after = _FileState()
    parts: list[_PartWords] = []
    size_bytes = 0
    with suppress(OSError):
        for chunk in read_chunks(file.path, after.done, PART_BYTES):
            if not chunk.data.endswith(b"\n"):
                break
            part, after = _read_part(chunk, after)
            parts.append(part)
            size_bytes += chunk.size_bytes
            if size_bytes >= BATCH_BYTES:
                after = replace(after, size=-1, crc=checksum(file.path, after.done))
                yield _FileChange(file.path, before, after, starts_anew, tuple(parts))
                before, starts_anew, parts, size_bytes = after, False, [], 0
        after = replace(
            after,
            size=file.size_bytes,
            mtime_ns=file.mtime_ns,
            crc=checksum(file.path, after.done),
        )
        yield _FileChange(file.path, before, after, starts_anew, tuple(parts))


def _continues(file: SessionFile, known: _FileState) -> bool:
    if known.done == 0 or known.done > file.size_bytes or known.size == file.size_bytes:
        return False  # of the same size with another time: rewritten
    return known.crc >= 0 and checksum(file.path, known.done) == known.crc


def _read_part(chunk: Chunk, before: _FileState) -> tuple[_PartWords, _FileState]:
    name, prompt = before.name, before.prompt
    texts: list[str] = []
    for line in chunk.data.split(b"\n"):
        entry = load_record(line) if line else None
        if entry is None:
            continue
        new_name, new_prompt = title_part(entry)
        name, prompt = new_name or name, prompt or printable_line(new_prompt)
        texts.append(record_text(entry))
    stop = before.done + chunk.size_bytes
    words = " ".join(words_of("\n".join(texts)))
    part = _PartWords(FilePart(before.done, stop), words)
    return part, replace(before, done=stop, name=printable_line(name), prompt=prompt)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A session that may answer a query; `title` is its name and the start of its first prompt.

    There are thousands for a common word, of which few are shown: what costs is made when asked.
    """

    encoded_path: bytes
    mtime_ns: int
    title: str
    places: Mapping[_Place, int]
    """How many of the terms each part has; empty: nobody knows."""

    @property
    def path(self) -> Path:
        """The session's file."""
        return Path(os.fsdecode(self.encoded_path))

    @property
    def parts(self) -> tuple[FilePart, ...]:
        """Where to look: those parts first that have most of the terms, then newer ones."""
        ordered = sorted(self.places.items(), key=lambda item: (item[1], item[0]), reverse=True)
        return tuple(FilePart(start, stop) for (_, start, stop), _ in ordered)


class WordIndex:
    """One connection to the index; use it as a context manager, in one thread.

    Each row of ``words`` holds the different words of a part of a file, and nothing else: no
    positions, no text. It is about a fortieth of the size of the files.

    Raises:
        OSError, sqlite3.Error: It cannot be opened, made, read or written. FTS5 may be missing.
    """

    def __init__(self, path: Path) -> None:
        self._database = open_database(path, _BUSY_TIMEOUT_S)
        try:
            self._prepare()
        except sqlite3.Error:
            self._database.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def pending(self, files: Sequence[SessionFile]) -> list[SessionFile]:
        """Those of `files` that are new or have changed since they were indexed."""
        rows = self._database.execute("SELECT path, size, mtime_ns FROM files")
        known = {path: (size, mtime_ns) for path, size, mtime_ns in rows}
        return [
            file
            for file in files
            if known.get(os.fsencode(file.path)) != (file.size_bytes, file.mtime_ns)
        ]

    def forget_missing(self, files: Sequence[SessionFile]) -> None:
        """Drop what is known of files that are not among `files`."""
        present = {os.fsencode(file.path) for file in files}
        rows = self._database.execute("SELECT id, path FROM files").fetchall()
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            for file_id, path in rows:
                if path not in present:
                    self._forget(file_id)
            self._drop_if_mostly_dead()

    def add(self, files: Sequence[SessionFile], is_cancelled: Callable[[], bool]) -> Iterator[int]:
        """Index what is new in `files`, in transactions of some megabytes.

        Yields after each how many of `files` are done. What another process has indexed
        meanwhile is left as it is.
        """
        batch: list[_FileChange] = []
        for number, file in enumerate(files):
            for change in _file_changes(file, self._state_of(file.path)):
                if is_cancelled():
                    return
                batch.append(change)
                if sum(waiting.size_bytes for waiting in batch) >= BATCH_BYTES:
                    self._write(batch)
                    batch = []
                    yield number
        self._write(batch)
        yield len(files)

    @garbage_collection_paused()
    def find(self, wanted: Sequence[WordTerm]) -> list[FoundFile]:
        """The files that have the words of all of `wanted`."""
        chosen: dict[int, dict[_Place, int]] | None = None
        for term in wanted:
            by_file: dict[int, dict[_Place, int]] = {}
            for file, part, start, stop in self._places_of(term):
                by_file.setdefault(file, {})[part, start, stop] = 1
            chosen = by_file if chosen is None else _files_of_both(chosen, by_file)
        if not chosen:
            return []
        rows = self._database.execute("SELECT id, path, mtime_ns, name, prompt FROM files")
        return [
            FoundFile(path, mtime_ns, f"{name}\n{prompt}".strip(), chosen[file])
            for file, path, mtime_ns, name, prompt in rows
            if file in chosen
        ]

    def _places_of(self, term: WordTerm) -> Iterable[tuple[int, int, int, int]]:
        """File and place of each part with all words of `term`; of all parts if it has none."""
        if not term.words:
            return self._database.execute("SELECT file, id, start, stop FROM parts")
        quoted = [f'"{word}"' for word in term.words]
        return self._database.execute(
            "SELECT parts.file, parts.id, parts.start, parts.stop FROM words"
            " JOIN parts ON parts.id = words.rowid WHERE words MATCH ?",
            (" AND ".join(quoted) + ("*" if term.is_prefix else ""),),
        )

    def _prepare(self) -> None:
        self._database.execute("PRAGMA synchronous = NORMAL")
        if self._version() == _SCHEMA_VERSION:
            return
        self._database.execute("PRAGMA journal_mode = WAL")
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            if self._version() != _SCHEMA_VERSION:  # another process may have been quicker
                self._begin_anew()

    def _version(self) -> int:
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        return version

    def _begin_anew(self) -> None:
        for statement in _SCHEMA:
            self._database.execute(statement)

    def _state_of(self, path: Path) -> _FileState | None:
        row = self._database.execute(
            "SELECT size, mtime_ns, done, crc, name, prompt FROM files WHERE path = ?",
            (os.fsencode(path),),
        ).fetchone()
        return _FileState(*row) if row else None

    def _write(self, batch: Sequence[_FileChange]) -> None:
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            for change in batch:
                if self._state_of(change.path) == change.before:
                    self._apply(change)

    def _apply(self, change: _FileChange) -> None:
        key, after = os.fsencode(change.path), change.after
        if change.starts_anew:
            rows = self._database.execute("SELECT id FROM files WHERE path = ?", (key,)).fetchall()
            for (old_id,) in rows:
                self._forget(old_id)
        (file_id,) = self._database.execute(
            "INSERT INTO files (path, size, mtime_ns, done, crc, name, prompt)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET size = excluded.size,"
            " mtime_ns = excluded.mtime_ns, done = excluded.done, crc = excluded.crc,"
            " name = excluded.name, prompt = excluded.prompt RETURNING id",
            (key, after.size, after.mtime_ns, after.done, after.crc, after.name, after.prompt),
        ).fetchall()[0]
        for part in change.parts:
            cursor = self._database.execute(
                "INSERT INTO parts (file, start, stop) VALUES (?, ?, ?)",
                (file_id, part.place.start, part.place.stop),
            )
            self._database.execute(
                "INSERT INTO words (rowid, word) VALUES (?, ?)", (cursor.lastrowid, part.words)
            )

    def _forget(self, file_id: int) -> None:
        self._database.execute("DELETE FROM files WHERE id = ?", (file_id,))
        self._database.execute("DELETE FROM parts WHERE file = ?", (file_id,))

    def _drop_if_mostly_dead(self) -> None:
        """Begin anew where most rows belong to files that were deleted or rewritten."""
        (made,) = self._database.execute(
            "SELECT ifnull(max(seq), 0) FROM sqlite_sequence"
        ).fetchone()
        (alive,) = self._database.execute("SELECT count(*) FROM parts").fetchone()
        if made - alive > max(_MOST_DEAD_PARTS, alive):
            self._begin_anew()


def _files_of_both(
    earlier: dict[int, dict[_Place, int]], by_file: dict[int, dict[_Place, int]]
) -> dict[int, dict[_Place, int]]:
    """The files of both, with how many terms each of their parts has."""
    joined: dict[int, dict[_Place, int]] = {}
    for file in earlier.keys() & by_file.keys():
        counts = dict(earlier[file])
        for place in by_file[file]:
            counts[place] = counts.get(place, 0) + 1
        joined[file] = counts
    return joined
