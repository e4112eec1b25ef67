"""Git indexes that git would not write."""

import hashlib
import struct
from collections.abc import Iterable
from pathlib import Path

_FILE = 0o100644
_NAME = 0xFFF


def entry(name: bytes, id: bytes, *, mode: int = _FILE, length: int | None = None) -> bytes:
    """An entry of version 2; `length` is what it says of its name."""
    noted = min(len(name), _NAME) if length is None else length
    head = struct.pack(">10I", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + id + struct.pack(">H", noted)
    return (head + name).ljust((len(head) + len(name) + 8) // 8 * 8, b"\0")


def index(
    entries: Iterable[bytes], extensions: bytes = b"", *, count: int | None = None, version: int = 2
) -> bytes:
    """An index whose ids are of SHA-1."""
    listed = list(entries)
    number = len(listed) if count is None else count
    content = struct.pack(">4sII", b"DIRC", version, number) + b"".join(listed) + extensions
    return content + hashlib.sha1(content, usedforsecurity=False).digest()


def extension(name: bytes, data: bytes) -> bytes:
    """An extension of an index."""
    return name + struct.pack(">I", len(data)) + data


def rename(file: Path, old: bytes, new: bytes) -> None:
    """Replace a name in the index `file` by another of the same length."""
    assert len(old) == len(new)
    content = file.read_bytes()[:-20].replace(old + b"\0", new + b"\0")
    assert new in content
    file.write_bytes(content + hashlib.sha1(content, usedforsecurity=False).digest())
