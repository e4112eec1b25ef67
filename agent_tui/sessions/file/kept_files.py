"""Earlier contents of files, stored beside a session once each, under their hash."""

import contextlib
import hashlib
import os
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from agent_tui.atomic_files import replace_private_file
from agent_tui.regular_files import read_regular_file

MOST_FILE_BYTES = 5_000_000
"""A larger file is not stored: nobody wrote it by hand."""

MOST_STORED_BYTES = 200_000_000
"""Compressed size per session; the oldest contents are removed first."""

_PULLED_AT_NS = 0
"""The time of a content that was pulled: before all others."""

_SUFFIX = ".files"


def folder_of(session: Path) -> Path:
    """The folder of the contents of the session at this path."""
    return session.with_suffix(_SUFFIX)


class KeptFiles:
    """The contents of one session. Blocking; readable by the owner only.

    Args:
        folder: The folder to use; None to store nothing.
        earlier: The folders of the sessions that it continues, for missing contents.
        most_bytes: Limit of all contents together.
    """

    def __init__(
        self,
        folder: Path | None,
        earlier: Callable[[], Iterable[Path]] = lambda: (),
        most_bytes: int = MOST_STORED_BYTES,
    ) -> None:
        self._folder = folder
        self._earlier = earlier
        self._most_bytes = most_bytes
        self._stored_bytes: int | None = None

    @property
    def is_there(self) -> bool:
        """Whether contents can be stored."""
        return self._folder is not None

    def keep(self, content: bytes) -> bool:
        """Store `content` under its `digest_of`; false if it is not stored."""
        if self._folder is None or len(content) > MOST_FILE_BYTES:
            return False
        path = _path(self._folder, digest_of(content))
        try:
            if not path.is_file():
                packed = zlib.compress(content, 1)
                self._make_room(len(packed))
                replace_private_file(path, packed)
            elif path.stat().st_mtime_ns == _PULLED_AT_NS:
                os.utime(path)
        except OSError:
            return False
        return True

    def keep_pulled(self, content: bytes) -> bool:
        """Store `content` if there is room beside what is stored; false if it is not stored.

        It is the first to be removed when room is needed: what this clone stored is worth more.
        """
        if self._folder is None or self._stored() + len(content) > self._most_bytes:
            return False
        path = _path(self._folder, digest_of(content))
        if path.is_file():
            return True
        with contextlib.suppress(OSError):
            if self.keep(content):
                os.utime(path, ns=(_PULLED_AT_NS, _PULLED_AT_NS))
                return True
        return False

    def content(self, digest: str) -> bytes | None:
        """The content stored under `digest`; None if it is missing or damaged."""
        folders = () if self._folder is None else (self._folder,)
        for folder in (*folders, *self._earlier()):
            with contextlib.suppress(OSError, zlib.error):
                content = zlib.decompress(read_regular_file(_path(folder, digest)))
                if digest_of(content) == digest:
                    return content
        return None

    def adopt(self, folder: Path) -> None:
        """Also store what another session stored in `folder`."""
        for path in folder.glob("*/*"):
            with contextlib.suppress(OSError, zlib.error):
                self.keep(zlib.decompress(read_regular_file(path)))

    def _make_room(self, packed_bytes: int) -> None:
        """Remove the oldest contents if the limit would be exceeded."""
        assert self._folder is not None
        self._stored_bytes = self._stored() + packed_bytes
        if self._stored_bytes <= self._most_bytes:
            return
        for _, size, path in sorted(self._list_contents()):
            path.unlink(missing_ok=True)
            self._stored_bytes -= size
            if self._stored_bytes <= self._most_bytes // 2:
                break

    def _stored(self) -> int:
        """Size of all contents, packed, in bytes."""
        if self._stored_bytes is None:
            self._stored_bytes = sum(size for _, size, _ in self._list_contents())
        return self._stored_bytes

    def _list_contents(self) -> Iterable[tuple[int, int, Path]]:
        """Yield time, size and path of each stored content."""
        assert self._folder is not None
        for path in self._folder.glob("*/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                yield status.st_mtime_ns, status.st_size, path


def digest_of(content: bytes) -> str:
    """The name of `content`: its SHA-256 as hex digits."""
    return hashlib.sha256(content).hexdigest()


def _path(folder: Path, digest: str) -> Path:
    return folder / digest[:2] / digest[2:]
