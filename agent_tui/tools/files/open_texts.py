"""Texts that are open in an editor: unsaved content counts as the file's content."""

from pathlib import Path
from typing import Protocol


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
