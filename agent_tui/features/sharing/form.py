"""The form in which entries travel: without keys, and with a neutral name for the project's folder.

A line in this form is a line of a session file, so that every reader of the format can read it.
"""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from agent_tui.safe_paths import real_path
from agent_tui.secret_text import REMOVED, mask_secrets
from agent_tui.sessions.entries import (
    ContextEditEntry,
    Entry,
    Header,
    MessageEntry,
    PulledFrom,
    timestamp_now,
)
from agent_tui.sessions.format.codec import decode_record, encode_header, encode_repaired
from agent_tui.sessions.format.parse import id_in_name
from agent_tui.text import encode_path

PROJECT = "/@agent-tui-project"
"""Stands for the project's folder, which is another one in each clone."""

_STRUCTURE = frozenset(
    ("type", "id", "parentId", "timestamp", "targetId", "firstKeptEntryId", "fromId", "role")
)
"""Fields by which entries find each other; a short secret could occur in an id by chance."""

_CARRIED = ("id", "timestamp", "cwd", "provider", "model_id", "thinking_level", "parent_session")
"""Facts of a header that travel, beside what a compaction carried over."""

_PICTURES = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8", b"RIFF")
"""How the content of a picture begins."""

_TEXT_RUN = re.compile(rb"[\t\n\r -~]{8,}")

_LEAST_ROOT_PARTS = 2
"""A root such as ``/`` occurs in every path."""


class SharedForm:
    """Writes entries and headers in the form in which they travel.

    Args:
        roots: The project's folder, in each way in which sessions write it.
        secrets: Values that must not leave this machine.
    """

    def __init__(self, roots: Sequence[Path], secrets: Sequence[str] = ()) -> None:
        self._secrets = tuple(secrets)
        self._names = _names_of(roots)
        self._roots = _one_of(self._names)

    def write_entry(self, entry: Entry) -> bytes:
        """The line of `entry`, line end included."""
        own = entry.model_copy(update={"pulled_from": None})
        return self._line(encode_repaired(_without_signatures(own))[1])

    def write_header(self, header: Header) -> bytes:
        """The line of `header`, with only what another clone needs; line end included."""
        facts = {name: getattr(header, name) for name in _CARRIED}
        before = header.parent_session
        facts["parent_session"] = id_in_name(Path(before)) if before else None
        facts["origin"] = header.origin if header.origin == "print" else None
        facts["first_prompt"] = header.first_prompt
        carried = header.compaction
        facts["compaction"] = carried and carried.model_copy(update={"spent": ()})
        return self._line(encode_header(Header(**facts)))

    def mask(self, text: str) -> str:
        """`text` without secrets and without the project's path."""
        has_root = self._roots is not None and any(name in text for name in self._names)
        named = self._roots.sub(PROJECT, text) if self._roots and has_root else text
        return mask_secrets(named, self._secrets)

    def _line(self, line: bytes) -> bytes:
        data = cast(JsonObject, json.loads(line))
        kept = {name: value for name, value in data.items() if name in _STRUCTURE}
        shared = {**cast(JsonObject, _mapped(data, self.mask, self._picture)), **kept}
        return _dump(shared)

    def _picture(self, part: JsonObject) -> JsonValue:
        """`part`, which says that it is a picture; a text in its place if a key is in it."""
        match _decoded_picture(part.get("data")):
            case None:  # it says so, but its data is text like any other
                return {self.mask(name): _mapped(item, self.mask) for name, item in part.items()}
            case content if mask_secrets(text := _readable(content), self._secrets) != text:
                return {"type": "text", "text": REMOVED}
            case _:
                rest = {name: item for name, item in part.items() if name != "data"}
                return {**cast(JsonObject, _mapped(rest, self.mask)), "data": part["data"]}


def count_masks(line: bytes) -> int:
    """How often something was removed from `line`."""
    return line.count(REMOVED.encode())


def local_entry(entry: Entry, root: Path, earliest: str = "") -> Entry:
    """`entry`, which travelled, as an entry of this clone.

    Args:
        entry: The entry; a time in the future becomes the present one.
        root: The project's folder here.
        earliest: The earliest time that it may have, as ISO 8601; an earlier one becomes this.
    """
    time = max(min(entry.timestamp, timestamp_now()), earliest)
    if time != entry.timestamp:
        entry = entry.model_copy(update={"timestamp": time})
    line = encode_repaired(entry)[1]
    if PROJECT.encode() not in line:
        return entry
    name = encode_path(str(root))
    data = _mapped(cast(JsonValue, json.loads(line)), lambda text: text.replace(PROJECT, name))
    value = decode_record(_dump(cast(JsonObject, data)).rstrip(b"\n")).value
    assert not isinstance(value, Header), "an entry stays one"
    return value


def local_header(header: Header, root: Path, pulled_from: PulledFrom) -> Header:
    """`header`, which travelled, for the clone at `root`; a folder that is missing becomes `root`.

    The model and the address of another machine don't count here; the user's own do.
    """
    name = encode_path(str(root))
    data = _mapped(
        cast(JsonValue, header.model_dump(mode="json", by_alias=True, exclude_none=True)),
        lambda text: text.replace(PROJECT, name),
    )
    local = Header.model_validate(data)
    changes: dict[str, object] = {
        "cwd": str(_folder_below(root, header.cwd)),
        "provider": "",
        "model_id": "",
        "thinking_level": "off",
        "base_url": None,
        "launch_cwd": None,
        "pulled_from": pulled_from,
    }
    return local.model_copy(update=changes)


def _folder_below(root: Path, cwd: str) -> Path:
    """The folder of the clone at `root` that `cwd` names; `root` if it has none of that name."""
    if not cwd.startswith(f"{PROJECT}/") or ".." in (parts := Path(cwd).parts):
        return root
    folder = root.joinpath(*parts[2:])
    try:
        is_inside = folder.is_dir() and real_path(folder).is_relative_to(real_path(root))
    except (OSError, ValueError):  # a name that is too long, or has a NUL
        return root
    return folder if is_inside else root


def _without_signatures(entry: Entry) -> Entry:
    """`entry` without the providers' signatures: sealed texts, valid for one account only."""
    match entry:
        case MessageEntry(message=AssistantMessage() as reply):
            parts = tuple(map(_unsigned, reply.content))
            message = reply.model_copy(update={"content": parts})
            return entry.model_copy(update={"message": message})
        case ContextEditEntry(replacement=tuple() as parts):
            return entry.model_copy(update={"replacement": tuple(map(_unsigned, parts))})
        case _:
            return entry


def _unsigned(part: object) -> object:
    if isinstance(part, TextContent | ThinkingContent | ToolCall) and part.signature is not None:
        return part.model_copy(update={"signature": None})
    return part


def _names_of(roots: Sequence[Path]) -> tuple[str, ...]:
    """The names of `roots`, the longest first."""
    texts = {encode_path(str(root)) for root in roots if len(root.parts) > _LEAST_ROOT_PARTS - 1}
    return tuple(sorted(texts, key=len, reverse=True))


def _one_of(names: Sequence[str]) -> re.Pattern[str] | None:
    """Finds each of `names` where it is a whole path or the beginning of one."""
    if not names:
        return None
    either = "|".join(map(re.escape, names))
    return re.compile(rf"(?<![\w.-])(?:{either})(?![\w-]|\.\w)")


def _mapped(
    value: JsonValue,
    change: Callable[[str], str],
    picture: Callable[[JsonObject], JsonValue] | None = None,
) -> JsonValue:
    """`value` with each text in it, names of fields included, replaced.

    Args:
        value: What was read from a line.
        change: Replaces a text.
        picture: Replaces an object that says that it is a picture; None to treat it as any other.
    """
    match value:
        case str():
            return change(value)
        case {"type": "image"} if picture is not None and "data" in value:
            return picture(value)
        case dict():
            return {change(name): _mapped(item, change, picture) for name, item in value.items()}
        case list():
            return [_mapped(item, change, picture) for item in value]
        case _:
            return value


def _decoded_picture(data: JsonValue) -> bytes | None:
    """The content of a picture in Base64; None if `data` is something else."""
    if not isinstance(data, str):
        return None
    try:
        content = b64decode(data, validate=True)
    except ValueError:
        return None
    return content if content.startswith(_PICTURES) else None


def _readable(content: bytes) -> str:
    """The texts in `content`: names and notes that programs write into a picture."""
    return "\n".join(run.decode("ascii") for run in _TEXT_RUN.findall(content))


def _dump(data: JsonObject) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
