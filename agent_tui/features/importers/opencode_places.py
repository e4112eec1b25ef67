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
from agent_tui.features.importers.opencode_second import converted
from agent_tui.features.importers.values import refuse_links
from agent_tui.messages import JsonObject
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import is_file, real_path
from agent_tui.safe_text import printable_line
from agent_tui.sessions.importers.builder import Warnings
from agent_tui.sessions.importers.fields import (
    MAX_DOCUMENT_BYTES,
    as_count,
    as_list,
    as_object,
    json_document,
    read_json,
    text_at,
)

_MAGIC = b"SQLite format 3\0"
_ID = re.compile(r"[0-9A-Za-z_-]{1,100}")
_TABLES = frozenset({"session", "message", "part"})
_TABLES_2 = frozenset({"session_v2", "session_message"})
"""Those of opencode 2.x, which keeps the earlier ones beside them."""

_MOST_TABLES_NAMED = 8
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
    if what := unknown_database(path):
        raise SessionError(f"{path} is {what}.", _DATABASE_HINT)
    document = json_document(path)
    if is_export(document):
        return _from_export(as_object(document))
    if is_session_info(document):
        return _from_folders(path, as_object(document), warnings)
    raise SessionError(f"{path} is no opencode session.", "Name a session file.")


def is_database(path: Path) -> bool:
    """Whether a SQLite database with the tables of opencode is at `path`."""
    return _is_known(_tables_in(path))


def unknown_database(path: Path) -> str:
    """Describe a database that is none of opencode's known kinds; empty for anything else."""
    tables = _tables_in(path)
    if not tables or _is_known(tables):
        return ""
    named = ", ".join(map(printable_line, sorted(tables)[:_MOST_TABLES_NAMED]))
    more = ", …" if len(tables) > _MOST_TABLES_NAMED else ""
    return f"a database of an unknown kind, with the tables {named}{more}"


def _tables_in(path: Path) -> frozenset[str]:
    """The names of the tables of the SQLite database `path`; none if it is not readable."""
    if not is_file(path):
        return frozenset()
    try:
        with open_regular_file(path) as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return frozenset()
        with closing(_connect(path)) as database:
            return _stored_tables(database)
    except (OSError, ValueError, sqlite3.Error):
        return frozenset()


def _is_known(tables: frozenset[str]) -> bool:
    return tables >= _TABLES or tables >= _TABLES_2


def is_session_info(value: JsonValue) -> bool:
    """Whether a JSON value is the facts of one session."""
    info = as_object(value)
    has_folder = "directory" in info or "directory" in as_object(info.get("location"))
    return text_at(info, "id").startswith("ses_") and has_folder and "messages" not in info


def is_export(value: JsonValue) -> bool:
    """Whether a JSON value is what ``opencode export`` writes."""
    whole = as_object(value)
    return is_session_info(whole.get("info")) and isinstance(whole.get("messages"), list)


def sessions_in(database_file: Path) -> Iterator[Path]:
    """The paths ``DATABASE/ID`` of the sessions in a database, newest first; no subagents'."""
    if not is_database(database_file):
        return
    try:
        with closing(_connect(database_file)) as database:
            queries = " UNION ".join(
                f"SELECT id, time_updated FROM {table} WHERE coalesce(parent_id, '') = ''"
                for table in _session_tables(database)
            )
            query = f"{queries} ORDER BY time_updated DESC LIMIT ?"
            rows = database.execute(query, (_MOST_SESSIONS,)).fetchall()
    except sqlite3.Error:
        return
    ids = dict.fromkeys(_text(row[0]) for row in rows)
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
    first = (
        "SELECT part.data FROM message JOIN part ON part.message_id = message.id"
        " WHERE message.session_id = ? ORDER BY message.time_created, part.id LIMIT 5"
    )
    first_2 = (
        "SELECT json_object('type', 'text', 'text', json_extract(data, '$.text'))"
        " FROM session_message WHERE session_id = ? AND type = 'user' AND json_valid(data)"
        " ORDER BY seq LIMIT 5"
    )
    try:
        with closing(_connect(path.parent)) as database:
            row = _session_row(database, path.name)
            is_second = row is not None and _is_second(database, path.name, row)
            parts = database.execute(first_2 if is_second else first, (path.name,)).fetchall()
    except sqlite3.Error:
        return None
    if row is None:
        return None
    texts = (typed_text(_object(part[0])) for part in parts)
    prompt = next(filter(None, texts), "")
    return OpencodeFacts(row.folder, row.title, row.updated_ms, prompt)


def typed_text(part: JsonObject) -> str:
    """The text of a part if the user or the model wrote it; empty for another part."""
    is_typed = part.get("type") == "text" and part.get("synthetic") is not True
    return text_at(part, "text") if is_typed else ""


def _connect(path: Path) -> sqlite3.Connection:
    """Open a database for reading. One without changes in a log needs no file beside it.

    SQLite keeps the log beside the file itself, not beside a link to it.
    """
    path = real_path(path)
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


def _stored_tables(database: sqlite3.Connection) -> frozenset[str]:
    """The tables that are stored: a view of the same name could compute anything.

    So could a generated column, and in one step, which no limit ends.
    """
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    names = {_text(row[0]) for row in database.execute(query)}
    query = "SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden IN (2, 3)"
    ours = names & (_TABLES | _TABLES_2)
    return frozenset(
        names - {table for table in ours if database.execute(query, (table,)).fetchone()}
    )


def _session_tables(database: sqlite3.Connection) -> list[str]:
    """The tables with sessions, the newest version's first: it has those of the other, too."""
    tables = _stored_tables(database)
    second = ["session_v2"] if tables >= _TABLES_2 else []
    return [*second, *(["session"] if tables >= _TABLES else [])]


@dataclass(frozen=True, slots=True)
class _SessionRow:
    """A session in a database; `table` is the one that has it."""

    table: str
    parent_id: str
    folder: str
    title: str
    revert: JsonObject
    created_ms: int
    updated_ms: int


def _session_row(database: sqlite3.Connection, session_id: str) -> _SessionRow | None:
    columns: Final = "parent_id, directory, title, revert, time_created, time_updated"
    for table in _session_tables(database):
        query = f"SELECT {columns} FROM {table} WHERE id = ?"
        if row := database.execute(query, (session_id,)).fetchone():
            told = (_text(row[0]), _text(row[1]), _text(row[2]), _object(row[3]))
            return _SessionRow(table, *told, _count(row[4]), _count(row[5]))
    return None


def _is_second(database: sqlite3.Connection, session_id: str, row: _SessionRow) -> bool:
    """Whether the messages of a session are those in ``session_message``.

    A version that has both kinds of tables may have filled only one for an earlier session.
    """
    tables = _stored_tables(database)
    if "session_message" not in tables or not tables >= _TABLES:
        return "session_message" in tables
    preferred = "session_message" if row.table == "session_v2" else "message"
    query = f"SELECT 1 FROM {preferred} WHERE session_id = ? LIMIT 1"
    has_any = database.execute(query, (session_id,)).fetchone() is not None
    return (preferred == "session_message") == has_any


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
    row = _session_row(database, session_id)
    if row is None:
        raise SessionError(f"{database_file} has no session {session_id}.")
    info: JsonObject = {
        "id": session_id,
        "parentID": row.parent_id,
        "directory": row.folder,
        "title": row.title,
        "revert": row.revert,
        "time": {"created": row.created_ms, "updated": row.updated_ms},
    }
    room = _Room(database_file / session_id)
    is_second = _is_second(database, session_id, row)
    read_messages = _messages_2 if is_second else _messages
    messages = tuple(read_messages(database, session_id, room, warnings))

    def other(other_id: str) -> OpencodeSession | None:
        return _or_none(lambda: _from_database(database_file, other_id, Warnings()))

    return OpencodeSession(info, messages, other)


def _messages(
    database: sqlite3.Connection, session_id: str, room: _Room, warnings: Warnings
) -> Iterator[OpencodeMessage]:
    parts: dict[str, list[JsonObject]] = {}
    query = "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id"
    for part_id, message_id, data in database.execute(query, (session_id,)):
        part = _object(data)
        room.take(len(_text(data)))
        if not part:
            warnings.add(f"part {_text(part_id)}: not a JSON object; left out")
            continue
        parts.setdefault(_text(message_id), []).append({**part, "id": _text(part_id)})
    query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    for message_id, data in database.execute(query, (session_id,)):
        name = _text(message_id)
        told = _object(data)
        if not told:
            warnings.add(f"message {name}: not a JSON object; left out")
            continue
        own = tuple(parts.get(name, ()))
        yield OpencodeMessage(f"message {name}", {**told, "id": name}, own)


def _messages_2(
    database: sqlite3.Connection, session_id: str, room: _Room, warnings: Warnings
) -> Iterator[OpencodeMessage]:
    query = "SELECT id, type, data FROM session_message WHERE session_id = ? ORDER BY seq"
    for message_id, kind, data in database.execute(query, (session_id,)):
        name = _text(message_id)
        room.take(len(_text(data)))
        told = _object(data)
        if not told:
            warnings.add(f"message {name}: not a JSON object; left out")
            continue
        for info, parts in converted(_text(kind), {**told, "id": name}):
            yield OpencodeMessage(f"message {name}", info, parts)


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
        message, place = as_object(item), f"message {number}"
        if "info" not in message:
            for info, parts in converted(text_at(message, "type"), message):
                messages.append(OpencodeMessage(place, info, parts))
            continue
        parts = tuple(map(as_object, as_list(message.get("parts"))))
        messages.append(OpencodeMessage(place, as_object(message.get("info")), parts))
    told = as_object(whole.get("info"))
    folder = text_at(told, "directory") or text_at(as_object(told.get("location")), "directory")
    return OpencodeSession({**told, "directory": folder}, tuple(messages), lambda _id: None)


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
