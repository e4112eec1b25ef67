"""Reads followed files and folders, and stores what was in them by digest."""

import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agent_tui.atomic_files import replace_private_file
from agent_tui.features.sandbox.beneath import (
    folder_of,
    make_folders,
    read_own,
    writable_folder_of,
    write_at,
)
from agent_tui.regular_files import read_at
from agent_tui.safe_paths import is_folder, is_link
from agent_tui.tools.files.folder_entries import entries_in
from agent_tui.tools.files.obeyed import WORK_TREES, holds_work_trees
from agent_tui.tools.git.command import object_id

_MOST_FILES: Final = 2_000
_MOST_BYTES: Final = 20_000_000
_LINK: Final = "link:"
_MODE_OF_LINK: Final = "120000"
OTHER: Final = "other"
"""The digest of what cannot be compared: a pipe, or a folder that is too large. That of a file that
is too large or cannot be read begins so: it equals only that of the same, unchanged file."""

EMPTY: Final = "empty"
"""The digest of a followed folder without files. No program follows anything there."""


class FileVersion(NamedTuple):
    """A file or link as git stores it.

    Args:
        mode: Git's mode: 100644, 100755 if it can be run, 120000 for a link.
        content: The content, or where the link leads.
    """

    mode: str
    content: bytes

    @property
    def is_link(self) -> bool:
        """Whether it is a link."""
        return self.mode == _MODE_OF_LINK

    def is_in(self, mode: str, id: str) -> bool:
        """Whether an entry of a tree has it; what cannot be run may be an entry that can."""
        is_kind = mode == self.mode or (self.mode == "100644" and mode.startswith("100"))
        return is_kind and object_id(self.content, like=id) == id


class FileContents:
    """Reads files, and stores their content in `folder`.

    Args:
        folder: Our storage folder.
        roots: Where files are read and written.
    """

    def __init__(self, folder: Path, roots: Sequence[Path]) -> None:
        self._folder = folder
        self._roots = roots
        self._kept: set[str] = set()

    def digest_of(self, path: Path) -> str:
        """Digest of what is at `path` now, which is stored; empty if nothing is there.

        It is read each time: what is written to a mapped file changes its times only once.
        """
        try:
            status = path.lstat()
        except OSError:
            return ""
        with suppress(OSError):
            if stat.S_ISLNK(status.st_mode):
                return _LINK + os.readlink(os.fsencode(path)).hex()  # noqa: PTH115 - the exact text
            if stat.S_ISREG(status.st_mode):
                with folder_of(path, self._roots) as folder:
                    return self.keep(*read_at(folder, path.name, _MOST_BYTES))
        if stat.S_ISREG(status.st_mode):
            return f"{OTHER}:{status.st_ino}:{status.st_ctime_ns}"
        return OTHER

    def digests_in(self, node: Path) -> dict[Path, str] | None:
        """The digest of each file that `node` is or contains; None if `files_of` says so."""
        files = files_of(node)
        return None if files is None else {path: self.digest_of(path) for path in files}

    def of(self, digest: str) -> tuple[bytes, int] | None:
        """The content and the mode for a digest; None if it is not stored."""
        name, _, mode = digest.partition("-")
        with suppress(OSError, ValueError):
            return read_own(self._folder / name), int(mode, 8)
        return None

    def bytes_of(self, digest: str) -> bytes | None:
        """The content of the file with this digest, or where the link leads; None if not stored."""
        if is_link_digest(digest):
            return bytes.fromhex(digest.removeprefix(_LINK))
        kept = self.of(digest)
        return None if kept is None else kept[0]

    def version_of(self, digest: str) -> FileVersion | None:
        """What git would store of the file or link with this digest; None if it is not stored."""
        if (content := self.bytes_of(digest)) is None:
            return None
        if is_link_digest(digest):
            return FileVersion(_MODE_OF_LINK, content)
        can_run = int(digest.rpartition("-")[2], 8) & 0o111
        return FileVersion("100755" if can_run else "100644", content)

    def write(self, path: Path, digest: str) -> None:
        """Write the file or link with `digest` to `path`, if it is stored.

        Raises:
            OSError: It cannot be written, or a folder is there.
        """
        make_folders(path.parent, self._roots)
        with writable_folder_of(path, self._roots) as folder:
            if (kept := self.of(digest)) is not None:
                write_at(folder, path.name, *kept)
            elif is_link_digest(digest):
                with suppress(FileNotFoundError):
                    os.unlink(path.name, dir_fd=folder)
                target = os.fsdecode(bytes.fromhex(digest.removeprefix(_LINK)))
                os.symlink(target, path.name, dir_fd=folder)

    def keep(self, content: bytes, mode: int) -> str:
        """Store a file with this `content`; returns its digest."""
        name = hashlib.sha256(content).hexdigest()
        if name not in self._kept:
            if not (self._folder / name).exists():
                replace_private_file(self._folder / name, content)
            self._kept.add(name)
        return f"{name}-{mode:o}"


def is_link_digest(digest: str) -> bool:
    """Whether `digest` is that of a link."""
    return digest.startswith(_LINK)


def is_other(digest: str) -> bool:
    """Whether `digest` is that of what cannot be compared."""
    return digest.startswith(OTHER)


def is_stored(digest: str) -> bool:
    """Whether `digest` is that of a link or of a file's content, which can be written again."""
    return is_link_digest(digest) or "-" in digest


def files_of(node: Path) -> list[Path] | None:
    """The files and links that `node` is or contains; None if a folder has too many, or too large.

    Without work trees (`work_trees_in`).
    """
    found: list[Path] = []
    size = 0
    pending, trees = [node], work_trees_in(node)
    for path in pending:
        with suppress(OSError):
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode):
                pending += (each for each in entries_of(path) if each != trees)
            else:
                found.append(path)
                size += 0 if path == node else status.st_size
            if len(pending) > _MOST_FILES or size > _MOST_BYTES:
                return None
    return found


def entries_of(folder: Path) -> list[Path]:
    """What is in `folder`; nothing if it cannot be listed."""
    return list(map(Path, entries_in(folder)))


def work_trees_in(node: Path) -> Path | None:
    """The folder of `node` with an agent's work trees; None if there is none."""
    path = node / WORK_TREES
    is_one = may_hold_work_trees(node) and is_folder(path) and not is_link(path)
    return path if is_one else None


def may_hold_work_trees(node: Path) -> bool:
    """Whether an agent may keep work trees in `node`."""
    return holds_work_trees(node.name, WORK_TREES)
