"""Reading a session file a few megabytes at a time, and knowing whether it only grew."""

import zlib
from collections.abc import Iterator
from pathlib import Path

CHUNK_BYTES = 4_000_000
_CHECKED_BYTES = 2_048


def read_chunks(path: Path, start: int = 0, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of `path` from `start` on, each piece whole lines; the last may lack its end.

    A line longer than `chunk_bytes` is a piece of its own.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        begun: list[bytes] = []
        while data := file.read(chunk_bytes):
            cut = data.rfind(b"\n") + 1
            if not cut:
                begun.append(data)
                continue
            yield b"".join((*begun, data[:cut]))
            begun = [data[cut:]] if cut < len(data) else []
        if begun:
            yield b"".join(begun)


def checksum(path: Path, size_bytes: int) -> int:
    """A number for the beginning and the end of the first `size_bytes` of `path`; -1 for none.

    With the same number and more bytes an append-only file has only grown. There is none where
    those bytes are not whole lines: what follows would go on in the middle of one.
    """
    try:
        with path.open("rb", buffering=0) as file:
            head = file.read(min(size_bytes, _CHECKED_BYTES))
            file.seek(max(size_bytes - _CHECKED_BYTES, 0))
            tail = file.read(min(size_bytes, _CHECKED_BYTES))
    except OSError:
        return -1
    if not tail.endswith(b"\n"):
        return -1
    return zlib.crc32(tail, zlib.crc32(head))
