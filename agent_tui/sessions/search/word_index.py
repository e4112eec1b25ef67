"""An index of all sessions' texts with SQLite's FTS5; it may be deleted, damaged or locked."""

import os
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import JsonValue
from pydantic_core import from_json

from agent_tui.attachments import without_tags
from agent_tui.messages import JsonObject, texts_in
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_text import printable_line, strip_escape_sequences
from agent_tui.sessions.file.chunks import LineChunk, checksum, read_chunks, read_lines
from agent_tui.sessions.listing import SessionFile, open_database
from agent_tui.text import markdown_words, repair_text
from agent_tui.text_search import fold, split_query

_MOST_MARKDOWN = 20_000
"""Characters; a longer reply is shown as it was written."""


def load_record(line: bytes) -> JsonObject | None:
    """The object on a line; None if it cannot be parsed."""
    try:
        value = cast(JsonValue, from_json(line))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def record_text(entry: JsonObject) -> str:
    """The searchable text of a record: messages, calls, results and names."""
    text = "\n".join(_texts(entry))
    return strip_escape_sequences(text) if "\x1b" in text else text


def _texts(entry: JsonObject) -> Iterator[str]:
    match entry:
        case {"type": "message", "message": {"role": "bashExecution", **message}}:
            yield from texts_in([message.get("command"), message.get("output")])
        case {"type": "message", "message": {"content": content}}:
            yield from _content(content)
        case {"type": "custom_message", "content": content}:
            yield from _content(content)
        case {"type": "compaction" | "branch_summary", "summary": str(summary)}:
            yield summary
        case {"type": "session_info", "name": str(name)}:
            yield name
        case {"type": "label", "label": str(label)}:
            yield label
        case _:
            return


def display_text(entry: JsonObject) -> str:
    """`record_text` as shown: a model's Markdown rendered, without our own tags."""
    text = record_text(entry)
    markdown = text[: _markdown_length(entry)]
    if not markdown:
        return without_tags(text)
    drawn = markdown_words(markdown) if len(markdown) <= _MOST_MARKDOWN else markdown
    return drawn + text[len(markdown) :]


def _markdown_length(entry: JsonObject) -> int:
    """The length of the part of `record_text` that a model wrote for people; it comes first."""
    match entry:
        case {"type": "message", "message": {"role": "assistant", "content": list(content)}}:
            calls = (number for number, part in enumerate(content) if _is_call(part))
            said: JsonObject = {"content": content[: next(calls, len(content))]}
            return len(record_text({"type": "message", "message": said}))
        case {"type": "compaction" | "branch_summary"}:
            return len(record_text(entry))
        case _:
            return 0


def _is_call(part: JsonValue) -> bool:
    return isinstance(part, dict) and part.get("type") == "toolCall"


def title_part(entry: JsonObject) -> tuple[str, str]:
    """The session name in a record and the prompt in it; empty if there is none."""
    match entry:
        case {"type": "session_info"}:
            return record_text(entry), ""
        case {"type": "message", "message": {"role": "user"}}:
            return "", record_text(entry)
        case _:
            return "", ""


def _content(content: JsonValue) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            match part:
                case {"type": "text", "text": str(text)}:
                    yield text
                case {"type": "thinking", "thinking": str(thinking)}:
                    yield thinking
                case {"type": "toolCall", **call}:
                    yield from texts_in([call.get("name"), call.get("arguments")])
                case _:
                    pass


BATCH_BYTES = 8_000_000
"""Bytes indexed per transaction, which are lost if the program is stopped meanwhile."""

CHUNK_BYTES = 1_000_000
"""Bytes read between two checks for cancellation."""

_SCHEMA_VERSION = 3
_BUSY_TIMEOUT_S = 0.2
_HASH_BYTES = 32_000_000
"""Memory FTS5 collects words in before it writes: its default of 1 MB takes half as long again."""

_MOST_DEAD_FILES = 2_000
_TOKENS = "unicode61 remove_diacritics 2 categories ''L* N* Co S*''"
_SCHEMA = (
    "DROP TABLE IF EXISTS files",
    "DROP TABLE IF EXISTS texts",
    "DROP TABLE IF EXISTS parts",  # from the first version, as is words
    "DROP TABLE IF EXISTS words",
    "CREATE TABLE files (id INTEGER PRIMARY KEY AUTOINCREMENT, path BLOB UNIQUE NOT NULL,"
    " size INTEGER NOT NULL DEFAULT -1, mtime_ns INTEGER NOT NULL DEFAULT 0,"
    " done INTEGER NOT NULL DEFAULT 0, crc INTEGER NOT NULL DEFAULT -1,"
    " name TEXT NOT NULL DEFAULT '', prompt TEXT NOT NULL DEFAULT '')",
    f"CREATE VIRTUAL TABLE texts USING fts5(text, content='', columnsize=0, tokenize='{_TOKENS}')",
    f"INSERT INTO texts(texts, rank) VALUES ('hashsize', {_HASH_BYTES})",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)
_SNIPPETS = (
    f"CREATE VIRTUAL TABLE temp.shown USING fts5(drawn, written, folded, tokenize='{_TOKENS}')"
)

_PLACE_BITS = 40
"""A row of `texts` is a line of a file: the file's id, then the byte offset of the line."""

_MOST_TERMS, _MOST_QUERY_CHARS = 24, 400
_PIECE_CHARS, _PIECE_OVERLAP, _PIECE_BITS = 4_000, 200, 32
"""Of a record, the first piece that matches is cut: with each match in a text, `snippet` reads all
of it again."""

_SNIPPET_WORDS = 32
_CHARS_BEFORE, _CHARS_SHOWN = 50, 160
_BEGIN, _END = "\x02", "\x03"
"""Marks around a match."""

_BETWEEN = "\u200b"
"""Separates words invisibly."""

_ALONE = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "$+<=>^`|~]|[^\\w\\s\\x00-\\x7f\u0300-\u036f\u200b]"
)
"""Characters that are a word each: signs, and those of scripts without spaces."""


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """A word or phrase of a query.

    Attributes:
        text: The term, folded.
        expression: The FTS5 expression.
    """

    text: str
    expression: str


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A session that matches a search.

    `matches` counts the entries with at least one of the words. `snippet` is one line of the newest
    entry with all of them, else with any, or the session's title if that entry is unreadable.
    """

    path: Path
    matches: int
    snippet: str


@dataclass(frozen=True, slots=True)
class _IndexedFile:
    """The indexed part of a file: all whole lines of its first `done` bytes, with checksum `crc`.

    `size` and `mtime_ns` are those of the file when it was completely indexed; `size` is -1 until
    then.
    `name` and `prompt` are the session's name and the beginning of its first prompt.
    """

    id: int
    path: bytes
    size: int
    mtime_ns: int
    done: int
    crc: int
    name: str
    prompt: str

    def is_current(self, file: SessionFile) -> bool:
        """Whether all of `file` is indexed."""
        return (self.size, self.mtime_ns) == (file.size_bytes, file.mtime_ns)

    def is_beginning_of(self, file: SessionFile) -> bool:
        """Whether `file` only grew; one of the same size with another time was rewritten."""
        if self.done > file.size_bytes or self.size == file.size_bytes:
            return False
        return self.done == 0 or (self.crc >= 0 and checksum(file.path, self.done) == self.crc)


def search_terms(query: str) -> list[SearchTerm]:
    """The words and quoted phrases of `query`; any text is a query.

    A word at the end may be unfinished, but a single letter is ignored there. Of very long queries
    only the beginning counts.
    """
    terms: dict[str, SearchTerm] = {}
    for text, is_open in split_query(repair_text(query[:_MOST_QUERY_CHARS]).replace("\0", " ")):
        folded = fold(text)
        if not any(unicodedata.category(letter)[0] in "LNS" for letter in folded):
            continue
        is_prefix = is_open and folded[-1].isalnum() and not _ALONE.match(folded[-1])
        if len(terms) < _MOST_TERMS and not (is_prefix and len(folded) == 1):
            composed = unicodedata.normalize("NFKC", text.casefold())
            spellings = dict.fromkeys((folded, composed, composed.replace("ss", "ß")))
            phrases = [f'"{_with_words_apart(one)}"{" *" * is_prefix}' for one in spellings]
            terms[folded] = SearchTerm(folded, f"({' OR '.join(phrases)})")
    return list(terms.values())


def _with_words_apart(text: str) -> str:
    return _ALONE.sub(f"{_BETWEEN}\\g<0>{_BETWEEN}", text)


@dataclass(frozen=True, slots=True)
class _FoundLines:
    """The number of matching lines of a file, and where the newest begins."""

    count: int
    newest: int


class WordIndex:
    """One connection to the index; use it in one thread at a time.

    It stores the places of words by file and line, not the texts: about a third of the files' size.

    Args:
        path: The SQLite file; None for an index in memory.

    Raises:
        OSError, sqlite3.Error: It cannot be opened, created, read or written. FTS5 may be missing.
    """

    def __init__(self, path: Path | None) -> None:
        self.is_in_memory = path is None
        if path is None:
            self._database = sqlite3.connect(":memory:", check_same_thread=False)
        else:
            self._database = open_database(path, _BUSY_TIMEOUT_S)
        try:
            self._prepare()
        except sqlite3.Error:
            self._database.close()
            raise

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def pending(self, files: Sequence[SessionFile]) -> list[SessionFile]:
        """Those of `files` that are new or changed since they were indexed."""
        known = {indexed.path: indexed for indexed in self._files()}
        states = ((file, known.get(os.fsencode(file.path))) for file in files)
        return [file for file, state in states if state is None or not state.is_current(file)]

    def forget_missing(self, files: Sequence[SessionFile]) -> None:
        """Forget files that are not in `files`.

        Their words stay until most words are of such files; then the index is rebuilt.
        """
        present = {os.fsencode(file.path) for file in files}
        gone = [(indexed.id,) for indexed in self._files() if indexed.path not in present]
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany("DELETE FROM files WHERE id = ?", gone)
            made, alive = self._database.execute(
                "SELECT (SELECT ifnull(max(seq), 0) FROM sqlite_sequence), count(*) FROM files"
            ).fetchone()
            if made - alive > max(_MOST_DEAD_FILES, alive):
                self._begin_again()

    def add(
        self,
        files: Sequence[SessionFile],
        is_cancelled: Callable[[], bool],
        most_bytes: int | None = None,
    ) -> Iterator[int]:
        """Index new contents of `files`, in transactions of a few megabytes.

        Yields the number of finished `files` after each. An unreadable file stays as indexed. After
        about `most_bytes`, no further file is started.
        """
        done, read_bytes, batch_bytes = 0, 0, 0
        while done < len(files):
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                while done < len(files) and batch_bytes < BATCH_BYTES:
                    if is_cancelled() or (most_bytes is not None and read_bytes >= most_bytes):
                        return
                    new_bytes, is_whole = self._add_chunk(files[done])
                    batch_bytes += new_bytes
                    read_bytes += new_bytes
                    done += is_whole
            batch_bytes = 0
            yield done

    def find(
        self, terms: Sequence[SearchTerm], limit: int, among: Collection[Path] | None = None
    ) -> list[SearchHit]:
        """The sessions with all `terms`: matches in the title first, then the newest.

        Args:
            terms: At least one.
            limit: Most hits.
            among: Only these files; None for all.
        """
        any_of = " OR ".join(term.expression for term in terms)
        all_of = " AND ".join(term.expression for term in terms)
        found = self._lines(any_of)
        for term in terms if len(terms) > 1 else ():
            having = self._lines(term.expression).keys()
            found = {file_id: lines for file_id, lines in found.items() if file_id in having}
        best = self._lines(all_of) if len(terms) > 1 else {}
        wanted = None if among is None else {os.fsencode(path) for path in among}
        files = [
            file
            for file in self._files()
            if file.id in found and (wanted is None or file.path in wanted)
        ]
        files.sort(key=lambda file: (_in_title(file, terms), file.mtime_ns), reverse=True)
        del files[limit:]
        records = [_record_at(file, best.get(file.id, found[file.id]).newest) for file in files]
        snippets = self._snippets(records, any_of)
        return [
            SearchHit(_path(file), found[file.id].count, _line(snippets.get(number, _title(file))))
            for number, file in enumerate(files)
        ]

    def _lines(self, expression: str) -> dict[int, _FoundLines]:
        """The lines that match `expression`, by file id."""
        rows = self._database.execute(
            f"SELECT rowid >> {_PLACE_BITS}, count(*), max(rowid) & {(1 << _PLACE_BITS) - 1}"
            " FROM texts WHERE texts MATCH ? GROUP BY 1",
            (expression,),
        )
        return {file_id: _FoundLines(count, newest) for file_id, count, newest in rows}

    def _snippets(self, records: Sequence[JsonObject], expression: str) -> dict[int, str]:
        """The matching part of each of `records`, by its number.

        It is cut from the rendered text, else from the original, else from the folded one.
        """
        rows: list[tuple[int | str, ...]] = []
        for number, record in enumerate(records):
            written = record_text(record)
            forms = dict.fromkeys((display_text(record), written, fold(written)))
            texts = [_with_words_apart(form) for form in forms] + [""] * (3 - len(forms))
            for at in range(0, max(map(len, texts), default=1) or 1, _PIECE_CHARS):
                pieces = (text[at : at + _PIECE_CHARS + _PIECE_OVERLAP] for text in texts)
                rows.append(((number << _PIECE_BITS) + at // _PIECE_CHARS, *pieces))
        cut = f"'{_BEGIN}', '{_END}', '…', {_SNIPPET_WORDS})"
        columns = ", ".join(f"snippet(shown, {column}, {cut}" for column in range(3))
        snippets: dict[int, str] = {}
        with self._database:
            self._database.executemany(
                "INSERT INTO shown(rowid, drawn, written, folded) VALUES (?, ?, ?, ?)", rows
            )
            first = (
                f"SELECT min(rowid) FROM shown WHERE shown MATCH ? GROUP BY rowid >> {_PIECE_BITS}"
            )
            for (row,) in self._database.execute(first, (expression,)).fetchall():
                (parts,) = self._database.execute(
                    f"SELECT {columns} FROM shown WHERE shown MATCH ? AND rowid = ?",
                    (expression, row),
                )
                part = next((part for part in parts if _BEGIN in part), parts[0])
                snippets[row >> _PIECE_BITS] = part
            self._database.execute("DELETE FROM shown")
        return snippets

    def _prepare(self) -> None:
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute("PRAGMA temp_store = MEMORY")
        if self._version() != _SCHEMA_VERSION:
            self._database.execute("PRAGMA journal_mode = WAL")
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                if self._version() != _SCHEMA_VERSION:  # another process may have been faster
                    self._begin_again()
        self._database.execute(_SNIPPETS)

    def _version(self) -> int:
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        return version

    def _begin_again(self) -> None:
        for statement in _SCHEMA:
            self._database.execute(statement)

    def _files(self, path: bytes | None = None) -> list[_IndexedFile]:
        """The indexed state of all files, or of the one at `path`."""
        columns = "SELECT id, path, size, mtime_ns, done, crc, name, prompt FROM files"
        where, values = ("", ()) if path is None else (" WHERE path = ?", (path,))
        return [_IndexedFile(*row) for row in self._database.execute(columns + where, values)]

    def _add_chunk(self, file: SessionFile) -> tuple[int, bool]:
        """Index the next megabyte of `file`; returns the bytes read and whether they were the last.

        The last line is left for later if its end is missing.
        """
        known = self._find_indexed(file)
        if known.is_current(file):
            return 0, True
        try:
            chunk = next(read_chunks(file.path, known.done, CHUNK_BYTES), LineChunk(b"", 0))
        except OSError:
            return 0, True
        has_end = chunk.data.endswith(b"\n")
        done, name, prompt = known.done, known.name, known.prompt
        if has_end:
            start = (known.id << _PLACE_BITS) + done + chunk.size_bytes - len(chunk.data)
            name, prompt = self._add_lines(start, chunk.data.split(b"\n"), name, prompt)
            done += chunk.size_bytes
        is_last = not has_end or done >= file.size_bytes
        size, mtime_ns = (file.size_bytes, file.mtime_ns) if is_last else (-1, 0)
        self._database.execute(
            "UPDATE files SET size = ?, mtime_ns = ?, done = ?, crc = ?, name = ?, prompt = ?"
            " WHERE id = ?",
            (size, mtime_ns, done, checksum(file.path, done), name, prompt, known.id),
        )
        return chunk.size_bytes, is_last

    def _find_indexed(self, file: SessionFile) -> _IndexedFile:
        """The indexed state of `file`; empty if it is new or was rewritten."""
        path = os.fsencode(file.path)
        for known in self._files(path):
            if known.is_current(file) or known.is_beginning_of(file):
                return known
            self._database.execute("DELETE FROM files WHERE id = ?", (known.id,))
        self._database.execute("INSERT INTO files (path) VALUES (?)", (path,))
        (new,) = self._files(path)
        return new

    def _add_lines(
        self, place: int, lines: Sequence[bytes], name: str, prompt: str
    ) -> tuple[str, str]:
        """Index `lines`, which begin at row `place`; returns the updated name and prompt."""
        rows: list[tuple[int, str]] = []
        for line in lines:
            if record := load_record(line):
                new_name, new_prompt = title_part(record)
                name = printable_line(new_name) or name
                prompt = prompt or printable_line(new_prompt)
                if text := record_text(record):
                    rows.append((place, _with_words_apart(fold(text))))
            place += len(line) + 1
        self._database.executemany("INSERT INTO texts(rowid, text) VALUES (?, ?)", rows)
        return name, prompt


def _path(file: _IndexedFile) -> Path:
    return Path(os.fsdecode(file.path))


def _title(file: _IndexedFile) -> str:
    return f"{file.name} {file.prompt}".strip()


def _in_title(file: _IndexedFile, terms: Sequence[SearchTerm]) -> int:
    """The number of `terms` in the session's name or first prompt."""
    title = fold(_title(file))
    return sum(term.text in title for term in terms)


def _record_at(file: _IndexedFile, place: int) -> JsonObject:
    """The record on the line at byte `place`; empty if it is unreadable."""
    try:
        with open_regular_file(_path(file)) as opened:
            opened.seek(place)
            line = next(read_lines(opened), b"")
    except OSError:
        return {}
    return (load_record(line) if isinstance(line, bytes) else None) or {}


def _line(snippet: str) -> str:
    """`snippet` on one line, with the match near its beginning."""
    before, _, after = snippet.replace(_BETWEEN, "").partition(_BEGIN)
    if len(before) > _CHARS_BEFORE:
        before = "…" + before[-_CHARS_BEFORE:]
    return printable_line((before + after).replace(_BEGIN, "").replace(_END, ""), _CHARS_SHOWN)
