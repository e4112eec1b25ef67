"""Reading foreign files with a bound on what one piece may cost: JSON lines, or one document."""

import hashlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.regular_files import open_regular_file, read_regular_file
from agent_tui.sessions.file.chunks import CHUNK_BYTES, LongLine, read_lines
from agent_tui.sessions.file.disk import describe_fault
from agent_tui.sessions.importers.builder import Warnings
from agent_tui.text import repair_json

MAX_DOCUMENT_BYTES = 256 * 1024 * 1024
"""Of a file that is one JSON document; the largest real ones are far below."""


def json_lines(path: Path, warnings: Warnings) -> Iterator[tuple[int, JsonValue]]:
    r"""The lines of `path` with their numbers, one at a time; they end at ``\n`` only.

    A line that cannot be read is passed over with a warning.

    Raises:
        SessionError: The file cannot be read.
    """
    for number, line in _lines(path):
        if isinstance(line, LongLine):
            problem = f"too long to read; left out ({line.size_bytes:,} bytes)"
            warnings.add(f"line {number}: {problem}")
            continue
        if not line.strip(b"\x00 \t\r\n"):
            continue
        try:
            yield number, read_json(line)
        except ValueError as error:
            torn = not line.endswith(b"\n")
            problem = "cut off in the middle" if torn else str(error)
            warnings.add(f"line {number}: {problem}; left out ({len(line):,} bytes)")


def json_document(path: Path) -> JsonValue:
    """The one JSON value that `path` holds.

    Raises:
        SessionError: It cannot be read, is too large, or is no JSON.
    """
    try:
        size = path.stat().st_size
        if size > MAX_DOCUMENT_BYTES:
            raise SessionError(f"{path} is larger than {MAX_DOCUMENT_BYTES:,} bytes.")
        data = read_regular_file(path)
    except OSError as error:
        raise describe_fault(path, "read", error) from error
    try:
        return read_json(data)
    except ValueError as error:
        raise SessionError(f"{path}: {error}.", "Is the file complete?") from error


def id_from_content(path: Path) -> str:
    """A session id, as a UUID, that follows from the bytes of `path` alone.

    Raises:
        SessionError: The file cannot be read.
    """
    try:
        with open_regular_file(path) as file:
            digest = hashlib.file_digest(file, "sha256")
    except OSError as error:
        raise describe_fault(path, "read", error) from error
    return str(uuid.UUID(bytes=digest.digest()[:16], version=4))


def read_json(data: bytes) -> JsonValue:
    """`data` as JSON, lone surrogates and bytes that are not UTF-8 replaced.

    Raises:
        ValueError: It is none; the text says why.
    """
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").strip("\x00 \t\r\n")
    try:
        return repair_json(cast(JsonValue, json.loads(text, strict=False)))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"not valid JSON ({error})") from error


def _lines(path: Path) -> Iterator[tuple[int, bytes | LongLine]]:
    try:
        with open_regular_file(path, buffering=CHUNK_BYTES) as file:
            yield from enumerate(read_lines(file), start=1)
    except OSError as error:
        raise describe_fault(path, "read", error) from error
