"""Read a git index: which repositories it names, and whether git would write elsewhere for it.

Git checks the names of files when it adds them to an index, but not when it reads one. A forged
index can name ``../x``, ``/x`` or ``.git/hooks/x``, and ``git checkout .`` writes there.

The format is that of ``gitformat-index(5)``, read as strictly as git writes it. Git itself reads
more: it finds entries by the offsets in an extension, and takes the length of a name from one place
and its end from another. So an index that can be read in two ways is not safe.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_tui.regular_files import open_regular_file

INDEX: Final = "index"
_MOST_BYTES: Final = 500_000_000

_VERSIONS: Final = (2, 3, 4)
_HEADER_BYTES: Final = 12
_STATUS_BYTES: Final = 40
"""What an entry has before its id: times, mode, owner and size."""

_TYPE_AT: Final = 26
_GITLINK: Final = 0xE0
_FOLDER: Final = 0x40
_EXTENDED: Final = 0x40
_LONGEST: Final = 0xFFF
"""The length that is noted for names of that many bytes and more."""

_UNSAFE: Final = re.compile(
    rb"[\0/\\](?:(?<!\\)(?:[\0/]|\.[\0/]|\.\.[\0/])|(?:\.git|git~1)[. ]*[\0/\\:])"
)
"""What git's ``verify_path`` refuses, in lower-case names between zero bytes."""


@dataclass(frozen=True, slots=True)
class GitIndex:
    """What matters of an index.

    Args:
        gitlinks: The names of repositories in it.
        is_safe: Whether git writes only files of the work tree for it.
        base: The name of the file with the index that it extends, if any.
        has_unnamed: Whether it makes a repository of a file that only `base` names.
    """

    gitlinks: tuple[bytes, ...] = ()
    is_safe: bool = True
    base: str = ""
    has_unnamed: bool = False


class GitIndexes:
    """Reads indexes, and parses them again only when their content has changed.

    Args:
        began_ns: An index that has not changed since this time is not read again. Any other is:
            what is written to a mapped file changes its times only once.
    """

    def __init__(self, began_ns: int = 0) -> None:
        self._began_ns = began_ns
        self._known: dict[Path, tuple[object, object, GitIndex]] = {}

    def read(self, file: Path, id_bytes: int) -> GitIndex:
        """The index in `file`; an empty one if it cannot be read.

        Args:
            file: The index.
            id_bytes: The length of an object's id, which an index does not say.
        """
        known = self._known.get(file)
        try:
            status = file.lstat()
            stamp = (id_bytes, status.st_ino, status.st_ctime_ns)
            if known is not None and known[0] == stamp and stamp[-1] < self._began_ns:
                return known[2]
            content = _read(file)
        except OSError:
            self._known.pop(file, None)
            return GitIndex()
        key = (id_bytes, len(content), hash(content))
        index = known[2] if known is not None and known[1] == key else _judge(content, id_bytes)
        self._known[file] = stamp, key, index
        return index

    def gitlinks_of(self, file: Path, id_bytes: int) -> Iterator[bytes]:
        """The names of the repositories in an index, and perhaps of other files."""
        index = self.read(file, id_bytes)
        yield from index.gitlinks
        if index.base:
            base = file.with_name(index.base)
            yield from self.read(base, id_bytes).gitlinks
            if index.has_unnamed:
                try:
                    yield from _parse(_read(base), id_bytes).names
                except (OSError, ValueError, IndexError, struct.error):
                    return


def names_are_safe(names: list[bytes]) -> bool:
    """Whether git writes for all `names` into the work tree only, and not into its ``.git``."""
    return _UNSAFE.search(b"\0".join((b"", *names, b"")).lower()) is None


def _read(file: Path) -> bytes:
    """The content of an index.

    Raises:
        OSError: It cannot be read.
    """
    with open_regular_file(file, follow_links=False) as opened:
        return opened.read(_MOST_BYTES)


def _judge(content: bytes, id_bytes: int) -> GitIndex:
    try:
        parsed = _parse(content, id_bytes)
    except (ValueError, IndexError, struct.error):
        return GitIndex(is_safe=False)
    names = [name for name in parsed.names if name] if parsed.base else parsed.names
    links = tuple(filter(None, parsed.gitlinks))
    return GitIndex(
        links, names_are_safe(names), parsed.base, has_unnamed=len(links) < len(parsed.gitlinks)
    )


@dataclass(slots=True)
class _Parsed:
    names: list[bytes]
    gitlinks: list[bytes]
    base: str = ""


def _parse(content: bytes, id_bytes: int) -> _Parsed:
    """Read an index.

    Raises:
        ValueError: It is not as git writes it.
        IndexError: It is too short.
    """
    version = int.from_bytes(content[4:8], "big")
    if content[:4] != b"DIRC" or version not in _VERSIONS:
        raise ValueError("unknown format")
    names, gitlinks, starts = list[bytes](), list[bytes](), list[int]()
    at, name, count = _HEADER_BYTES, b"", int.from_bytes(content[8:12], "big")
    flags_at = _STATUS_BYTES + id_bytes
    for _ in range(count):
        start = at
        high, low = content[at + flags_at], content[at + flags_at + 1]
        begin = at + flags_at + (4 if high & _EXTENDED else 2)
        if version == 4:
            cut, begin = _variable_int(content, begin)
            if cut > len(name):
                raise ValueError("malformed name")
            end = content.index(b"\0", begin)
            start = at if cut == len(name) else -1
            name = name[: len(name) - cut] + content[begin:end]
            following = end + 1
        else:
            end = content.index(b"\0", begin)
            name = content[begin:end]
            following = end + 8 - (end - at) % 8
        if (high << 8 | low) & _LONGEST != min(len(name), _LONGEST):
            raise ValueError("malformed name")
        kind = content[at + _TYPE_AT] & 0xF0
        if kind == _GITLINK:
            gitlinks.append(name)
        names.append(name[:-1] if kind == _FOLDER and name[-1:] == b"/" else name)
        starts.append(start)
        at = following
    return _Parsed(names, gitlinks, _read_extensions(content, at, starts, id_bytes))


def _read_extensions(content: bytes, at: int, starts: list[int], id_bytes: int) -> str:
    """The name of the index that this one extends, if any.

    Args:
        content: The whole index.
        at: Where its entries end.
        starts: Where each of them begins; -1 if it needs the one before to be read.
        id_bytes: The length of an object's id, and of the digest at the end.

    Raises:
        ValueError: They are not as git writes them, or do not agree with the entries.
    """
    entries_end, end, base = at, len(content) - id_bytes, b""
    while at < end:
        name, size = content[at : at + 4], int.from_bytes(content[at + 4 : at + 8], "big")
        data = content[at + 8 : at + 8 + size]
        at += 8 + size
        if name == b"EOIE":
            is_known = data[:4] == entries_end.to_bytes(4, "big")
        elif name == b"IEOT":
            is_known = _agree(data[4:], starts)
        elif name == b"link":
            is_known, base = not base and len(data) >= id_bytes, data[:id_bytes]
        else:
            is_known = name == b"sdir" or name[:1].isupper()
        if not is_known:
            raise ValueError("unknown extension")
    if at != end:
        raise ValueError("malformed extension")
    return f"sharedindex.{base.hex()}" if any(base) else ""


def _agree(blocks: bytes, starts: list[int]) -> bool:
    """Whether `blocks`, the offset and the number of entries of each, are where `starts` says."""
    at = 0
    for offset, number in struct.iter_unpack(">II", blocks):
        if starts[at] != offset:
            return False
        at += number
    return at == len(starts)


def _variable_int(content: bytes, at: int) -> tuple[int, int]:
    """A number of variable length as in git's packs, and where it ends."""
    byte = content[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = content[at]
        value = (value + 1 << 7) | byte & 0x7F
    return value, at + 1
