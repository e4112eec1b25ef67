"""Which files the model knows, in which version, and which an editor has open.

Unsaved content in an editor counts as the file's content.
"""

import contextlib
import hashlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from agent_tui.regular_files import open_regular_file, read_regular_file
from agent_tui.safe_paths import is_folder, real_path
from agent_tui.sessions.file.kept_files import digest_of

_Stat: TypeAlias = tuple[int, int, int]

_MOST_NAMES = 40
"""Words of a command that are tried as file names; a longer command is a script."""

_WORD = re.compile(r"""[^\s'"`|&;<>()$=]+""")
_LINE_NUMBER = re.compile(r"^[ \t]*\d+(?:\t|:)", re.MULTILINE)


class OpenTexts(Protocol):
    """Files that are open in an editor. Called only off the event loop."""

    def present(self, path: Path, on_disk: bytes) -> bytes:
        """The current content of `path`: `on_disk`, or what the editor would save now.

        Raises:
            OSError: It cannot be determined.
        """
        ...

    def take(self, path: Path, content: bytes) -> bool:
        """Have the editor write `content`; false if the file must be written to disk instead.

        Raises:
            OSError: The editor failed; `strerror` says why.
        """
        ...


class NoOpenTexts:
    """No editor: every file is only on disk."""

    def present(self, path: Path, on_disk: bytes) -> bytes:
        """Return `on_disk`."""
        return on_disk

    def take(self, path: Path, content: bytes) -> bool:
        """Return false: the caller writes to disk."""
        return False


@dataclass(slots=True)
class FileMemory:
    """The version of each file that the model has seen: resolved path -> content hash.

    Attributes:
        written: What tools wrote since `take_written`; None for a deleted file.
    """

    seen: dict[Path, str] = field(default_factory=dict[Path, str])
    written: dict[Path, bytes | None] = field(default_factory=dict[Path, bytes | None])
    _stats: dict[Path, _Stat] = field(default_factory=dict[Path, _Stat])

    def remember(self, path: Path, digest: str) -> None:
        """Record that the model knows the version of `path` with this digest."""
        self.seen[path] = digest
        self._stats[path] = _stat(path)

    def take_written(self) -> dict[Path, bytes | None]:
        """What tools wrote since the last call: the content, or None for a deleted file."""
        written, self.written = self.written, {}
        return written

    def find_unchanged(self) -> tuple[Path, ...]:
        """The files whose current content the model knows. Reads those touched since then."""
        return tuple(path for path in tuple(self.seen) if self._is_as_seen(path))

    def take_in(self, known: Collection[Path]) -> tuple[Path, ...]:
        """The files of `known` that changed since; their current versions now count as known."""
        changed = tuple(path for path in known if not self._is_as_seen(path))
        for path in changed:
            self._remember_present(path)
        return changed

    def note_command(self, known: Collection[Path], command: str, printed: str, cwd: Path) -> None:
        """Update after a command of the model: what it changed or printed in full is known.

        Args:
            known: The files whose current content was known before it ran.
            command: Its text; files it names are compared with its output.
            printed: Its output, as the model got it.
            cwd: Where it ran.
        """
        self.take_in(known)
        lines = f"\n{printed}\n"
        unnumbered = _LINE_NUMBER.sub("", lines)
        for path in _find_named_files(command, cwd, len(lines) * 4):
            content = _content(path)
            text = content.decode("utf-8", "replace").replace("\r\n", "\n").strip("\n")
            if text and any(f"\n{text}\n" in shown for shown in (lines, unnumbered)):
                self.remember(path, digest_of(content))

    def _is_as_seen(self, path: Path) -> bool:
        if self._stats.get(path) == (found := _stat(path)) != _NOTHING:
            return True
        if found == _NOTHING or _file_digest(path) != self.seen[path]:
            return False
        self._stats[path] = found
        return True

    def _remember_present(self, path: Path) -> None:
        if _stat(path) != _NOTHING:
            self.remember(path, _file_digest(path))


_NOTHING: _Stat = (0, 0, 0)


def _stat(path: Path) -> _Stat:
    try:
        found = path.stat()
    except OSError:
        return _NOTHING
    return found.st_ino, found.st_size, found.st_mtime_ns


def _file_digest(path: Path) -> str:
    try:
        with open_regular_file(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return digest_of(b"")


def _content(path: Path) -> bytes:
    try:
        return read_regular_file(path)
    except OSError:
        return b""


def _find_named_files(command: str, cwd: Path, most_bytes: int) -> Iterator[Path]:
    """The regular files that words of `command` name, relative to `cwd` or to a folder it names."""
    words = dict.fromkeys(_WORD.findall(command)[:_MOST_NAMES])
    folders = [cwd]
    for word in words:
        folders += [cwd / word] if is_folder(cwd / word) else []
    for path in (folder / word for word in words for folder in folders):
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_size <= most_bytes:
                yield real_path(path)
