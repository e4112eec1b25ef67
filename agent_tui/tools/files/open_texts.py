"""Texts that are open in an editor: what it holds unsaved is what the file holds."""

from pathlib import Path
from typing import Protocol


class OpenTexts(Protocol):
    """Where files are open beside the disk. Asked off the event loop alone."""

    def present(self, path: Path, on_disk: bytes) -> bytes:
        """What `path` holds: `on_disk`, or what that would be if the editor saved it now.

        Raises:
            OSError: It cannot be found out.
        """
        ...

    def take(self, path: Path, content: bytes) -> bool:
        """Have the editor write `content`; false where the file is to be written on the disk.

        Raises:
            OSError: The editor did not; `strerror` says why.
        """
        ...


class NoOpenTexts:
    """No editor: everything is on the disk."""

    def present(self, path: Path, on_disk: bytes) -> bytes:
        """What is on the disk."""
        return on_disk

    def take(self, path: Path, content: bytes) -> bool:
        """Left to the disk."""
        return False
