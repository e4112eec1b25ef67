"""One line of a session file, from bytes to a value and back."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from operator import is_not
from typing import TypeAlias, TypeVar, cast, get_args

from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError

from agent_tui.messages import JsonObject, Stored
from agent_tui.sessions.entries import (
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    Header,
    KnownEntry,
    MessageEntry,
    UnknownEntry,
    as_thinking_level,
    milliseconds,
)
from agent_tui.text import repair_json

_KNOWN_ENTRY: TypeAdapter[KnownEntry] = TypeAdapter(KnownEntry, config=ConfigDict(defer_build=True))
_KNOWN_TYPES: frozenset[str] = frozenset(
    kind.model_fields["type"].default for kind in get_args(get_args(KnownEntry)[0])
)

_BEGINNING = re.compile(
    rb"""
    \{\s*"type"\s*:\s* (?:
        "(?:session|%s)"\s*,
      | "[^"]{1,40}"\s*,\s*"id"\s*:\s*"[^"]{1,40}"\s*,\s*"parentId"\s*:  # a kind of others
    )
    """
    % b"|".join(sorted(kind.encode() for kind in _KNOWN_TYPES)),
    re.VERBOSE,
)


class UnreadableRecordError(ValueError):
    """A line without usable content; the text says why."""


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """The value of a line, and what was needed to read it.

    `names_parent` is false if the line has no ``parentId`` at all (format version 1).
    `first_kept_index` is how version 1 names the first kept entry of a compaction.
    """

    value: Header | Entry
    notes: tuple[str, ...] = ()
    names_parent: bool = True
    first_kept_index: int | None = None


def decode_record(line: bytes) -> DecodedRecord:
    """Read one line without its line end.

    Valid lines take the fast path (one call of pydantic's JSON reader). Of all others as much as
    possible is kept: invalid fields are left out and named in `DecodedRecord.notes`.

    Raises:
        UnreadableRecordError: The line is not a JSON object, or is nested too deeply.
    """
    try:
        entry = _KNOWN_ENTRY.validate_json(line)
    except ValidationError:
        return _read_with_care(line)
    return DecodedRecord(
        _with_file_times(entry), names_parent="parent_id" in entry.model_fields_set
    )


def recover_records(line: bytes) -> list[tuple[DecodedRecord, int]]:
    """The complete records in a line that `decode_record` cannot read, with their sizes in bytes.

    A program that continues after a truncated line, or two that write at the same time, put several
    entries on one line. An entry begins with its ``type``, as we and pi write it, and ends at the
    latest where the next one begins: each byte is read once.
    """
    starts = [found.start() for found in _BEGINNING.finditer(line)]
    pieces: list[tuple[DecodedRecord, int]] = []
    for start, end in pairwise([*starts, len(line)]):
        if (start, end) == (0, len(line)):
            break
        with suppress(UnreadableRecordError):
            pieces.append((decode_record(line[start:end]), end - start))
    return pieces


def encode_header(header: Header) -> bytes:
    """`header` as a line, line end included; lone surrogates (odd folder names) are replaced."""
    header = limit_depth(header)
    try:
        line = header.model_dump_json(by_alias=True, exclude_none=True)
    except PydanticSerializationError:
        line = Header.model_validate(_repair_fields(header)).model_dump_json(
            by_alias=True, exclude_none=True
        )
    return line.encode() + b"\n"


def encode_entry(entry: Entry) -> bytes:
    """`entry` as a line, line end included; ``type`` and the ids come first.

    Raises:
        PydanticSerializationError, UnicodeEncodeError: A text contains lone surrogates.
    """
    head: JsonObject = {"type": entry.type, "id": entry.id, "parentId": entry.parent_id}
    head["timestamp"] = entry.timestamp
    if isinstance(entry, ContextEditEntry) and entry.replacement is None:
        head["replacement"] = None
    head |= {name: None for name, value in (entry.model_extra or {}).items() if value is None}
    body = entry.model_dump_json(
        by_alias=True, exclude_none=True, exclude={"type", "id", "parent_id", "timestamp"}
    )
    front = json.dumps(head, ensure_ascii=False, separators=(",", ":"))
    joined = front[:-1] + ("," + body[1:] if body != "{}" else "}")
    return joined.encode("utf-8") + b"\n"


def encode_repaired(entry: Entry) -> tuple[Entry, bytes]:
    """`entry` and its line; repaired if the line could not be written or read back.

    Lone surrogates are replaced, and so are values nested too deeply.
    """
    shallow = limit_depth(entry)
    try:
        return shallow, encode_entry(shallow)
    except (PydanticSerializationError, UnicodeEncodeError):
        data = _repair_fields(shallow)
        repaired: Entry = (
            UnknownEntry.model_validate(data)
            if isinstance(shallow, UnknownEntry)
            else _KNOWN_ENTRY.validate_python(data)
        )
        return repaired, encode_entry(repaired)


def _repair_fields(value: Header | Entry) -> JsonValue:
    """The fields of `value` with every text repaired, as if read from a file."""
    escaped = json.dumps(
        value.model_dump(mode="json", by_alias=True)
    )  # escapes what UTF-8 cannot encode
    return repair_json(cast(JsonValue, json.loads(escaped)))


def _read_with_care(line: bytes) -> DecodedRecord:
    notes: list[str] = []
    text = line.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in line:
        notes.append("bytes that are not UTF-8 were replaced")
    if stripped := text.strip("\x00 \t\r"):
        if "\x00" in text:
            notes.append("NUL bytes were left out")
            text = text.replace("\x00", "")
        else:
            text = stripped
    elif "\x00" in text:
        raise UnreadableRecordError("nothing but NUL bytes")
    data = _load(text)
    shallow = limit_depth(data)
    if shallow is not data:
        notes.append("values nested too deeply were left out")
    repaired = repair_json(shallow)
    if repaired is not shallow:
        notes.append("lone surrogates or invalid numbers were replaced")
    assert isinstance(repaired, dict)
    return _to_value(repaired, notes)


def _load(text: str) -> JsonObject:
    try:
        data = cast(JsonValue, json.loads(text, strict=False))
    except RecursionError as error:
        raise UnreadableRecordError("nested too deeply") from error
    except ValueError as error:
        raise UnreadableRecordError(f"not valid JSON ({error})") from error
    if not isinstance(data, dict):
        raise UnreadableRecordError("not a JSON object")
    return data


def _to_value(data: JsonObject, notes: list[str]) -> DecodedRecord:
    if data.get("type") == "session":
        return DecodedRecord(_read_header(data, notes), tuple(notes))
    names_parent = "parentId" in data and isinstance(data["parentId"], str | None)
    kept_index = data.get("firstKeptEntryIndex")
    shaped = _as_present_format(data)
    entry: Entry | None = None
    kind = shaped.get("type")
    if isinstance(kind, str) and kind in _KNOWN_TYPES and not _is_system_message(shaped):
        entry = validate_repaired(_KNOWN_ENTRY.validate_python, shaped, notes)
        if entry is None:
            notes.append(f"not a usable {kind}; kept, but not shown to the model")
    if entry is None:
        entry = _read_unknown(shaped, notes)
    return DecodedRecord(
        _with_file_times(entry),
        tuple(notes),
        names_parent,
        kept_index if isinstance(kept_index, int) else None,
    )


def _is_system_message(data: JsonObject) -> bool:
    """Whether an entry is pi's record of its own prompt and tools; ours replace them."""
    message = data.get("message")
    return isinstance(message, dict) and message.get("role") == "system"


def _with_file_times(entry: Entry) -> Entry:
    """`entry` with only the file's times: otherwise a missing one would default to now."""
    changes: dict[str, object] = {}
    if "timestamp" not in entry.model_fields_set:
        changes["timestamp"] = ""
    if isinstance(entry, MessageEntry) and "timestamp" not in entry.message.model_fields_set:
        written_at = "" if changes else entry.timestamp
        dated = {"timestamp": milliseconds(written_at)}
        changes["message"] = entry.message.model_copy(update=dated)
    return entry.model_copy(update=changes) if changes else entry


def _read_header(data: JsonObject, notes: list[str]) -> Header:
    level = data.get("thinkingLevel")
    if isinstance(level, str):
        data = {**data, "thinkingLevel": as_thinking_level(level)}
    data = {"version": 1, "timestamp": "", **data}
    if "parentSession" not in data and isinstance(data.get("branchedFrom"), str):
        data = {**data, "parentSession": data["branchedFrom"]}
    header = validate_repaired(Header.model_validate, data, notes)
    if header is None:
        notes.append("no part of the header is usable")
        return Header(version=1, timestamp="")
    return header


def _read_unknown(data: JsonObject, notes: list[str]) -> Entry:
    if not isinstance(data.get("type"), str):
        notes.append("no entry type; kept, but not shown to the model")
        data = {**data, "type": "unknown"}
    entry = validate_repaired(UnknownEntry.model_validate, data, notes)
    if entry is None:
        raise UnreadableRecordError("not an entry")
    return entry


def _as_present_format(data: JsonObject) -> JsonObject:
    """`data` with the forms of older versions and related programs converted to the present one."""
    if data.get("type") == "compaction" and "firstKeptEntryId" not in data:
        shaped: JsonObject = {k: v for k, v in data.items() if k != "firstKeptEntryIndex"}
        return {**shaped, "firstKeptEntryId": ""}
    message = data.get("message")
    if data.get("type") != "message" or not isinstance(message, dict):
        return data
    if message.get("role") in ("custom", "hookMessage"):
        kept: JsonObject = {k: v for k, v in data.items() if k not in ("type", "message")}
        inner: JsonObject = {k: v for k, v in message.items() if k not in ("role", "timestamp")}
        return {**inner, **kept, "type": CustomMessageEntry.model_fields["type"].default}
    content = message.get("content")
    if message.get("role") in ("assistant", "toolResult") and isinstance(content, str):
        parts: list[JsonValue] = [{"type": "text", "text": content}]
        return {**data, "message": {**message, "content": parts}}
    return data


DEPTH = 100
"""Levels of a line that are written and read; pydantic's JSON reader takes 200 at most."""

TOO_DEEP_TEXT = "(nested too deeply)"
"""The text that replaces a list or object below `DEPTH`."""

_ROUNDS = 40
"""Most validations of one value: leaving out one fault can reveal another."""
_MOST_FAULTS = 10_000
"""Most faults of one value: reporting each takes a kilobyte."""
_NAMED_FAULTS = 20

ValueT = TypeVar("ValueT")
_Place: TypeAlias = tuple[str | int, ...]
"""The keys that lead to a part of a value."""


def validate_repaired(
    validate: Callable[[JsonValue], ValueT], data: JsonObject, notes: list[str]
) -> ValueT | None:
    """Validate `data` without its invalid parts; None if nothing usable is left.

    Args:
        validate: Raises `ValidationError`.
        data: The value; not modified.
        notes: Gets a line for each part left out, unless the result is None.
    """
    repaired: JsonValue = data
    faults: dict[_Place, str] = {}
    for _ in range(_ROUNDS):
        try:
            value = validate(repaired)
        except ValidationError as error:
            found = _faults(repaired, error)
            if not found:
                return None
            repaired = _without(repaired, list(found))
            faults |= found
            continue
        named = list(faults.items())[:_NAMED_FAULTS]
        notes += [f"{'.'.join(map(str, where))} left out ({reason})" for where, reason in named]
        if len(faults) > len(named):
            notes.append(f"{len(faults) - len(named):,} more fields left out")
        return value
    return None


def limit_depth(value: ValueT) -> ValueT:
    """`value` with lists and objects below `DEPTH` levels replaced by `TOO_DEEP_TEXT`.

    Returns the same object if there are none.
    """
    return cast(ValueT, _limit(value, DEPTH))


def _limit(value: object, room: int) -> object:
    match value:
        case Stored():
            return _limit_model(value, room)
        case dict() | list() | tuple() if room <= 0:
            return TOO_DEEP_TEXT
        case dict():
            fields = cast("dict[str, object]", value)
            changed = _changes(fields.items(), room)
            return {**fields, **changed} if changed else fields
        case list() | tuple():
            items = cast("list[object] | tuple[object, ...]", value)
            new = [_limit(item, room - 1) for item in items]
            if not any(map(is_not, new, items)):
                return items
            return new if isinstance(items, list) else tuple(new)
        case _:
            return value


def _limit_model(value: Stored, room: int) -> Stored:
    changed = _changes(value, room)
    return value.model_copy(update=changed) if changed else value


def _changes(fields: Iterable[tuple[str, object]], room: int) -> dict[str, object]:
    return {
        name: after for name, before in fields if (after := _limit(before, room - 1)) is not before
    }


def _faults(data: JsonValue, error: ValidationError) -> dict[_Place, str]:
    """The innermost faults of `data` by place, with reasons; empty if it cannot be repaired."""
    if error.error_count() > _MOST_FAULTS:
        return {}
    details = error.errors(include_url=False, include_input=False)
    found = {_place(data, detail): detail["msg"].lower() for detail in details}
    around = {where[:length] for where in found for length in range(len(where))}
    return {where: reason for where, reason in found.items() if where and where not in around}


def _place(data: JsonValue, detail: ErrorDetails) -> _Place:
    """The real keys that lead to the fault; pydantic also lists union members on the way."""
    where: list[str | int] = []
    for part in detail["loc"]:
        match data, part:
            case dict(), str() if part in data:
                data = data[part]
                where.append(part)
            case list(), int() if part < len(data):
                data = data[part]
                where.append(part)
            case _:
                pass
    return tuple(where)


def _without(data: JsonValue, places: Sequence[_Place]) -> JsonValue:
    """A copy of `data` without the items that `places` lead to."""
    inner: dict[str | int, list[_Place]] = {}
    for place in places:
        inner.setdefault(place[0], []).append(place[1:])

    def is_within(key: str | int) -> bool:
        return () not in inner.get(key, ())

    def part(key: str | int, value: JsonValue) -> JsonValue:
        return _without(value, inner[key]) if key in inner else value

    if isinstance(data, dict):
        return {key: part(key, value) for key, value in data.items() if is_within(key)}
    assert isinstance(data, list)
    return [part(at, value) for at, value in enumerate(data) if is_within(at)]
