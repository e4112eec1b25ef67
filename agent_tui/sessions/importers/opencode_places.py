"""Where opencode keeps sessions: a database, JSON files in folders, and what it exports.

All are read into one form. The database is that of a program that may run: it is opened for
reading only, and so that SQLite puts no files beside it where it can be avoided.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.messages import JsonObject
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import is_file
from agent_tui.sessions.importers.builder import Warnings
from agent_tui.sessions.importers.fields import (
    MAX_DOCUMENT_BYTES,
    as_count,
    as_list,
    as_object,
    json_document,
    read_json,
    refuse_links,
    text_at,
)

_MAGIC = b"SQLite format 3\0"
_ID = re.compile(r"[0-9A-Za-z_-]{1,100}")
_TABLES = frozenset({"session", "message", "part"})
_MOST_STEPS = 50_000_000
"""Steps of SQLite's machine for one query; a session of 100,000 parts takes a tenth of them."""

_MOST_SESSIONS = 5_000
_BUSY_SECONDS = 2.0
_DATABASE_HINT = "Is it a database of opencode, and readable?"


class _Room:
    """How much of a session is read into memory: as much as of a session in one file."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._left = MAX_DOCUMENT_BYTES

    def take(self, size_bytes: int) -> None:
        """Count what was read.

        Raises:
            SessionError: It is too much.
        """
        self._left -= size_bytes
        if self._left < 0:
            raise SessionError(f"{self._place} is larger than {MAX_DOCUMENT_BYTES:,} bytes.")


@dataclass(frozen=True, slots=True)
class OpencodeMessage:
    """A message with its parts, in their order; `place` says where it is, for warnings."""

    place: str
    info: JsonObject
    parts: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class OpencodeSession:
    """A session in one form.

    Attributes:
        info: Its facts.
        messages: Its messages, oldest first.
        other: Reads another session of the same place by its id: a subagent's. None if it is not
            there.
    """

    info: JsonObject
    messages: tuple[OpencodeMessage, ...]
    other: Callable[[str], "OpencodeSession | None"]


def is_plain_id(text: str) -> bool:
    """Whether `text` can be an id; it then names no other folder or file."""
    return _ID.fullmatch(text) is not None


def read_opencode_session(path: Path, warnings: Warnings) -> OpencodeSession:
    """The session at `path`: ``DATABASE/ID``, a file of the folder ``session``, or an export.

    Raises:
        SessionError: It cannot be read, or is no session of opencode.
    """
    if is_database(path):
        return _only_session(path, warnings)
    if is_database(path.parent) and is_plain_id(path.name):
        return _from_database(path.parent, path.name, warnings)
    document = json_document(path)
    if is_export(document):
        return _from_export(as_object(document))
    if is_session_info(document):
        return _from_folders(path, as_object(document), warnings)
    raise SessionError(f"{path} is no opencode session.", "Name a session file.")


def is_database(path: Path) -> bool:
    """Whether a SQLite database with the tables of opencode is at `path`."""
    if not is_file(path):
        return False
    try:
        with open_regular_file(path) as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return False
        with closing(_connect(path)) as database:
            return _has_tables(database)
    except (OSError, ValueError, sqlite3.Error):
        return False


def is_session_info(value: JsonValue) -> bool:
    """Whether a JSON value is the facts of one session."""
    info = as_object(value)
    return text_at(info, "id").startswith("ses_") and "directory" in info and "messages" not in info


def is_export(value: JsonValue) -> bool:
    """Whether a JSON value is what ``opencode export`` writes."""
    whole = as_object(value)
    return is_session_info(whole.get("info")) and isinstance(whole.get("messages"), list)


def sessions_in(database_file: Path) -> Iterator[Path]:
    """The paths ``DATABASE/ID`` of the sessions in a database, newest first; no subagents'."""
    if not is_database(database_file):
        return
    query = "SELECT id FROM session WHERE parent_id IS NULL ORDER BY time_updated DESC LIMIT ?"
    try:
        with closing(_connect(database_file)) as database:
            rows = database.execute(query, (_MOST_SESSIONS,)).fetchall()
    except sqlite3.Error:
        return
    ids = (_text(row[0]) for row in rows)
    yield from (database_file / session_id for session_id in ids if is_plain_id(session_id))


@dataclass(frozen=True, slots=True)
class OpencodeFacts:
    """What a list shows of a session in a database; times in milliseconds since 1970."""

    folder: str
    title: str
    updated_ms: int
    prompt: str


def facts_in(path: Path) -> OpencodeFacts | None:
    """The facts of the session at ``DATABASE/ID``; None if it cannot be read."""
    if not is_plain_id(path.name) or not is_database(path.parent):
        return None
    session = "SELECT directory, title, time_updated FROM session WHERE id = ?"
    first = (
        "SELECT part.data FROM message JOIN part ON part.message_id = message.id"
        " WHERE message.session_id = ? ORDER BY message.time_created, part.id LIMIT 5"
    )
    try:
        with closing(_connect(path.parent)) as database:
            row = database.execute(session, (path.name,)).fetchone()
            parts = database.execute(first, (path.name,)).fetchall()
    except sqlite3.Error:
        return None
    if row is None:
        return None
    texts = (typed_text(_object(part[0])) for part in parts)
    prompt = next(filter(None, texts), "")
    return OpencodeFacts(_text(row[0]), _text(row[1]), _count(row[2]), prompt)


def typed_text(part: JsonObject) -> str:
    """The text of a part if the user or the model wrote it; empty for another part."""
    is_typed = part.get("type") == "text" and part.get("synthetic") is not True
    return text_at(part, "text") if is_typed else ""


def _connect(path: Path) -> sqlite3.Connection:
    """Open a database for reading. One without changes in a log needs no file beside it.

    SQLite keeps the log beside the file itself, not beside a link to it.
    """
    path = path.resolve()
    log = path.with_name(f"{path.name}-wal")
    is_settled = not is_file(log) or not log.stat().st_size
    settled = "&immutable=1" if is_settled else ""
    address = f"file:{quote(str(path))}?mode=ro{settled}"
    database = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS)
    database.text_factory = _decode
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_DOCUMENT_BYTES)
    steps = 0

    def count_steps() -> int:
        nonlocal steps
        steps += 100_000
        return int(steps > _MOST_STEPS)

    database.set_progress_handler(count_steps, 100_000)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA query_only = ON")
    return database


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _has_tables(database: sqlite3.Connection) -> bool:
    """Whether the tables are there, and stored: a view of the same name could compute anything.

    So could a generated column, and in one step, which no limit ends.
    """
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    if not {_text(row[0]) for row in database.execute(query)} >= _TABLES:
        return False
    query = "SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden IN (2, 3)"
    return not any(database.execute(query, (table,)).fetchone() for table in _TABLES)


def _only_session(database_file: Path, warnings: Warnings) -> OpencodeSession:
    found = list(sessions_in(database_file))
    if len(found) == 1:
        return _from_database(database_file, found[0].name, warnings)
    named = f"Name one of them: {found[0]}" if found else _DATABASE_HINT
    raise SessionError(f"{database_file} holds {len(found):,} sessions.", named)


def _from_database(database_file: Path, session_id: str, warnings: Warnings) -> OpencodeSession:
    try:
        with closing(_connect(database_file)) as database:
            return _read_rows(database, database_file, session_id, warnings)
    except sqlite3.Error as error:
        raise SessionError(f"{database_file}: {error}.", _DATABASE_HINT) from error


def _read_rows(
    database: sqlite3.Connection, database_file: Path, session_id: str, warnings: Warnings
) -> OpencodeSession:
    columns: Final = "id, parent_id, directory, title, version, revert, time_created, time_updated"
    row = database.execute(f"SELECT {columns} FROM session WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        raise SessionError(f"{database_file} has no session {session_id}.")
    info: JsonObject = {
        "id": session_id,
        "parentID": _text(row[1]),
        "directory": _text(row[2]),
        "title": _text(row[3]),
        "revert": _object(row[5]),
        "time": {"created": _count(row[6]), "updated": _count(row[7])},
    }
    room = _Room(database_file / session_id)
    parts: dict[str, list[JsonObject]] = {}
    query = "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id"
    for part_id, message_id, data in database.execute(query, (session_id,)):
        part = _object(data)
        room.take(len(_text(data)))
        if not part:
            warnings.add(f"part {_text(part_id)}: not a JSON object; left out")
            continue
        parts.setdefault(_text(message_id), []).append({**part, "id": _text(part_id)})
    messages: list[OpencodeMessage] = []
    query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    for message_id, data in database.execute(query, (session_id,)):
        name = _text(message_id)
        told = _object(data)
        if not told:
            warnings.add(f"message {name}: not a JSON object; left out")
            continue
        own = tuple(parts.get(name, ()))
        messages.append(OpencodeMessage(f"message {name}", {**told, "id": name}, own))

    def other(other_id: str) -> OpencodeSession | None:
        return _or_none(lambda: _from_database(database_file, other_id, Warnings()))

    return OpencodeSession(info, tuple(messages), other)


def _from_folders(path: Path, info: JsonObject, warnings: Warnings) -> OpencodeSession:
    """The session of ``storage/session/PROJECT/ID.json``, with the folders beside ``session``."""
    session_id, storage = text_at(info, "id"), path.parent.parent.parent
    if not is_plain_id(session_id):
        raise SessionError(f"{path} is no opencode session.", "Name a session file.")
    room = _Room(path)
    messages: list[OpencodeMessage] = []
    for told in _json_files(storage, f"message/{session_id}", room, warnings):
        message_id = text_at(told, "id")
        if not is_plain_id(message_id):
            warnings.add(f"message {message_id[:40]!r}: not an id; left out")
            continue
        parts = tuple(_json_files(storage, f"part/{message_id}", room, warnings))
        messages.append(OpencodeMessage(f"message {message_id}", told, parts))
    messages.sort(key=lambda message: (_created(message.info), text_at(message.info, "id")))

    def other(other_id: str) -> OpencodeSession | None:
        beside = path.with_name(f"{other_id}.json")
        if not is_plain_id(other_id):
            return None
        return _or_none(lambda: _from_folders(beside, _info_at(beside), Warnings()))

    return OpencodeSession(info, tuple(messages), other)


def _info_at(file: Path) -> JsonObject:
    return as_object(json_document(refuse_links(file, file.parent)))


def _json_files(storage: Path, folder: str, room: _Room, warnings: Warnings) -> list[JsonObject]:
    """The JSON objects in a folder, by name: the names are ids, which rise with time.

    Raises:
        SessionError: `room` is used up.
    """
    found: list[JsonObject] = []
    try:
        files = sorted((storage / folder).glob("*.json"))
    except OSError:
        files = []
    for file in files:
        try:
            value = json_document(refuse_links(file, storage))
            size_bytes = file.stat().st_size
        except (SessionError, OSError) as error:
            warnings.add(f"{error}; left out")
            continue
        room.take(size_bytes)
        if isinstance(value, dict):
            found.append(value)
        else:
            warnings.add(f"{file.name}: not a JSON object; left out")
    return found


def _from_export(whole: JsonObject) -> OpencodeSession:
    messages: list[OpencodeMessage] = []
    for number, item in enumerate(as_list(whole.get("messages")), start=1):
        message = as_object(item)
        info = as_object(message.get("info"))
        parts = tuple(map(as_object, as_list(message.get("parts"))))
        messages.append(OpencodeMessage(f"message {number}", info, parts))
    return OpencodeSession(as_object(whole.get("info")), tuple(messages), lambda _id: None)


def _or_none(read: Callable[[], OpencodeSession]) -> OpencodeSession | None:
    try:
        return read()
    except SessionError:
        return None


def _created(info: JsonObject) -> int:
    return as_count(as_object(info.get("time")).get("created"))


def _object(data: object) -> JsonObject:
    """The JSON object in a column; an empty one for anything else."""
    try:
        return as_object(read_json(_text(data).encode("utf-8", "replace")))
    except ValueError:
        return {}


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
