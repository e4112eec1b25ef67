"""One line of a session file, from bytes to a value and back."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError

from agent_tui.messages import JsonObject
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
_KNOWN_TYPES = frozenset(
    {
        "message",
        "model_change",
        "thinking_level_change",
        "compaction",
        "context_edit",
        "custom",
        "custom_message",
        "branch_summary",
        "label",
        "session_info",
    }
)
_MOST_MENDS = 40
"""Fields of one line that are dropped before it is given up; each costs one validation."""

ValueT = TypeVar("ValueT")


class UnreadableLineError(ValueError):
    """A line holds nothing that can be used; the text says why."""


@dataclass(frozen=True, slots=True)
class ReadLine:
    """What a line holds, and what had to be done to read it.

    `names_parent` is false where the line has no ``parentId`` at all (format version 1).
    `first_kept_index` is version 1's way to name the first kept entry of a compaction.
    """

    value: Header | Entry
    notes: tuple[str, ...] = ()
    names_parent: bool = True
    first_kept_index: int | None = None


def read_line(line: bytes) -> ReadLine:
    """Read one line without its line end.

    Sound lines take the quick way (one call into pydantic's JSON reader). For all others as
    much as possible is kept: wrong fields are left out and named in `ReadLine.notes`.

    Raises:
        UnreadableLineError: The line is no JSON object, or nests too deeply.
    """
    try:
        entry = _KNOWN_ENTRY.validate_json(line)
    except ValidationError as error:
        if "recursion limit" in error.errors(include_url=False, include_input=False)[0]["msg"]:
            raise UnreadableLineError("nested too deeply") from error
        return _read_with_care(line)
    return ReadLine(_dated(entry), names_parent="parent_id" in entry.model_fields_set)


def encode_header(header: Header) -> bytes:
    """`header` as a line, line end included; lone surrogates (odd folder names) are replaced."""
    try:
        line = header.model_dump_json(by_alias=True, exclude_none=True)
    except PydanticSerializationError:
        line = Header.model_validate(_repaired_fields(header)).model_dump_json(
            by_alias=True, exclude_none=True
        )
    return line.encode() + b"\n"


def encode_entry(entry: Entry) -> bytes:
    """`entry` as a line, line end included; ``type`` and the ids stand first.

    Raises:
        PydanticSerializationError, UnicodeEncodeError: A text holds lone surrogates.
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
    """`entry` and its line; where a text holds lone surrogates, a repaired entry and its line."""
    try:
        return entry, encode_entry(entry)
    except (PydanticSerializationError, UnicodeEncodeError):
        data = _repaired_fields(entry)
        repaired: Entry = (
            UnknownEntry.model_validate(data)
            if isinstance(entry, UnknownEntry)
            else _KNOWN_ENTRY.validate_python(data)
        )
        return repaired, encode_entry(repaired)


def _repaired_fields(value: Header | Entry) -> JsonValue:
    """The fields of `value` with every text repaired, as they would be read from a file."""
    escaped = json.dumps(value.model_dump(by_alias=True))  # escapes what UTF-8 cannot hold
    return repair_json(cast(JsonValue, json.loads(escaped)))


def _read_with_care(line: bytes) -> ReadLine:
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
        raise UnreadableLineError("nothing but NUL bytes")
    data = _load(text)
    repaired = repair_json(data)
    if repaired is not data:
        notes.append("lone surrogates or numbers that are none were replaced")
    assert isinstance(repaired, dict)
    return _to_value(repaired, notes)


def _load(text: str) -> JsonObject:
    try:
        data = cast(JsonValue, json.loads(text, strict=False))
    except RecursionError as error:
        raise UnreadableLineError("nested too deeply") from error
    except ValueError as error:
        raise UnreadableLineError(f"not valid JSON ({error})") from error
    if not isinstance(data, dict):
        raise UnreadableLineError("not a JSON object")
    return data


def _to_value(data: JsonObject, notes: list[str]) -> ReadLine:
    if data.get("type") == "session":
        return ReadLine(_read_header(data, notes), tuple(notes))
    names_parent = "parentId" in data
    kept_index = data.get("firstKeptEntryIndex")
    shaped = _as_present_format(data)
    entry: Entry | None = None
    kind = shaped.get("type")
    if isinstance(kind, str) and kind in _KNOWN_TYPES:
        entry = _validate_mended(_KNOWN_ENTRY.validate_python, shaped, notes)
        if entry is None:
            notes.append(f"not a usable {kind}; kept, but not shown to the model")
    if entry is None:
        entry = _read_unknown(shaped, notes)
    return ReadLine(
        _dated(entry),
        tuple(notes),
        names_parent,
        kept_index if isinstance(kept_index, int) else None,
    )


def _dated(entry: Entry) -> Entry:
    """`entry` with times that come from the file alone: the default of a missing one is now."""
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
    header = _validate_mended(Header.model_validate, data, notes)
    assert header is not None, "every field of a header has a default"
    return header


def _read_unknown(data: JsonObject, notes: list[str]) -> Entry:
    if not isinstance(data.get("type"), str):
        notes.append("no entry type; kept, but not shown to the model")
        data = {**data, "type": "unknown"}
    entry = _validate_mended(UnknownEntry.model_validate, data, notes)
    if entry is None:
        raise UnreadableLineError("not an entry")
    return entry


def _as_present_format(data: JsonObject) -> JsonObject:
    """`data` with the shapes of older versions and near relatives turned into today's."""
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


def _validate_mended(
    validate: Callable[[JsonValue], ValueT], data: JsonObject, notes: list[str]
) -> ValueT | None:
    """Validate `data`, leaving out what is wrong piece by piece; None if nothing usable is left."""
    mended: JsonValue = data
    mend_notes: list[str] = []
    for _ in range(_MOST_MENDS):
        try:
            value = validate(mended)
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False)
            where, reason = max(
                ((_resolve(mended, detail), detail["msg"]) for detail in details),
                key=lambda found: len(found[0]),
            )
            if not where:
                return None
            mended = _without(mended, where)
            name = ".".join(str(part) for part in where)
            mend_notes.append(f"{name} left out ({reason.lower()})")
            continue
        notes += mend_notes
        return value
    return None


def _resolve(data: JsonValue, detail: ErrorDetails) -> tuple[str | int, ...]:
    """The keys that really lead to the fault; pydantic also names union members on the way."""
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


def _without(data: JsonValue, where: tuple[str | int, ...]) -> JsonValue:
    """A copy of `data` without the item that `where` leads to."""
    first, rest = where[0], where[1:]
    if isinstance(data, dict):
        copied = {k: v for k, v in data.items() if k != first or rest}
        if rest:
            copied[str(first)] = _without(data[str(first)], rest)
        return copied
    assert isinstance(data, list)
    assert isinstance(first, int)
    items = list(data)
    if rest:
        items[first] = _without(items[first], rest)
    else:
        del items[first]
    return items
