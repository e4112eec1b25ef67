"""Opens folders that their owner has closed, and gives them their modes back."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agent_tui.features.sandbox.beneath import folder_of, open_up

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Opened(NamedTuple):
    """A folder that was opened: its path, its device and inode, and the mode that it had."""

    path: Path
    identity: tuple[int, int]
    mode: int


class OpenedFolders:
    """Opens folders in `places`, where commands may put a link in any folder's place.

    Args:
        places: The outermost folders. No command can put a link on the way to them.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = tuple(places)
        self._opened: list[_Opened] = []

    def open(self, path: Path, *, for_good: bool) -> None:
        """Give us, its owner, all rights in the folder at `path`. Blocking.

        Args:
            path: An absolute path.
            for_good: Whether it stays open; else until `close`.
        """
        with suppress(OSError):
            if not any(place in path.parents for place in self._places):
                open_up(None, os.fspath(path))
                return
            with folder_of(path, self._places) as around:
                mode = open_up(around, path.name)
                status = os.stat(path.name, dir_fd=around, follow_symlinks=False)
            if mode is not None and not for_good:
                self._opened.append(_Opened(path, (status.st_dev, status.st_ino), mode))

    def close(self) -> None:
        """Give each folder that was opened the mode that it had, unless it has another by now."""
        opened, self._opened = self._opened, []
        for path, identity, mode in reversed(opened):  # what is in a folder comes before it
            with suppress(OSError), folder_of(path, self._places) as around:
                folder = os.open(path.name, _FOLDER, dir_fd=around)
                try:
                    status = os.fstat(folder)
                    is_same = (status.st_dev, status.st_ino) == identity
                    if is_same and stat.S_IMODE(status.st_mode) == mode | stat.S_IRWXU:
                        os.fchmod(folder, mode)
                finally:
                    os.close(folder)
