"""Read files of lines in pieces, from the start or the end, and check whether one only grew."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agent_tui.regular_files import open_regular_file

MAX_LINE_BYTES = 64_000_000
"""A longer line is skipped by every reader: no provider accepts a message of nearly that size."""

CHUNK_BYTES = 4_000_000
_CHECKED_BYTES = 2_048


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line that is too long to read; `size_bytes` includes its line end, if any."""

    size_bytes: int
    has_end: bool


@dataclass(frozen=True, slots=True)
class LineChunk:
    """Whole lines of a file, the last of which may lack its end.

    Attributes:
        data: The lines; a line that is too long is empty.
        size_bytes: Their size in the file.
    """

    data: bytes
    size_bytes: int


def read_lines(file: BinaryIO) -> Iterator[bytes | LongLine]:
    r"""The lines of `file`, which end at ``\n`` only, each with its end.

    Raises:
        OSError: The file cannot be read.
    """
    while line := file.readline(MAX_LINE_BYTES):
        if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
            yield line
            continue
        size_bytes = len(line)
        while line and not line.endswith(b"\n"):
            line = file.readline(CHUNK_BYTES)
            size_bytes += len(line)
        yield LongLine(size_bytes, has_end=bool(line))


def read_chunks(path: Path, start: int = 0, chunk_bytes: int = CHUNK_BYTES) -> Iterator[LineChunk]:
    """The contents of `path` from byte `start` on.

    A line longer than `chunk_bytes` begins a new chunk.

    Raises:
        OSError: The file cannot be read.
    """
    with open_regular_file(path, buffering=0) as file:
        file.seek(start)
        begun, passed_bytes = bytearray(), 0
        while data := file.read(chunk_bytes):
            cut = data.rfind(b"\n") + 1
            begun += data[:cut] if cut else data
            if cut:
                size_bytes = passed_bytes + len(begun)
                if passed_bytes:
                    del begun[: begun.find(b"\n")]
                yield LineChunk(bytes(begun), size_bytes)
                begun, passed_bytes = bytearray(data[cut:]), 0
            elif len(begun) > MAX_LINE_BYTES:
                passed_bytes += len(begun)
                begun.clear()
        if begun or passed_bytes:
            yield LineChunk(b"" if passed_bytes else bytes(begun), passed_bytes + len(begun))


def checksum(path: Path, size_bytes: int) -> int:
    """A checksum of the beginning and end of the first `size_bytes` of `path`; -1 for none.

    If it is the same and the file is longer, an append-only file has only grown. There is none if
    those bytes are not whole lines: the rest would begin inside one.
    """
    try:
        with open_regular_file(path, buffering=0) as file:
            head = file.read(min(size_bytes, _CHECKED_BYTES))
            file.seek(max(size_bytes - _CHECKED_BYTES, 0))
            tail = file.read(min(size_bytes, _CHECKED_BYTES))
    except OSError:
        return -1
    if not tail.endswith(b"\n"):
        return -1
    return zlib.crc32(tail, zlib.crc32(head))
