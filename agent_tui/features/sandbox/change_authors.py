"""Tells who can have changed a file: commands, the user, or either."""

import os
import resource
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from agent_tui.features.sandbox.file_contents import files_of
from agent_tui.features.sandbox.ground import REPLACED, close_all, is_at

_USUAL_LIMIT: Final = 1_024
"""Of open files, for a process on Linux; ``select`` takes no larger numbers."""

Author: TypeAlias = Literal["user", "either", "commands"]
"""Who can have changed a file: the user, as nothing runs; the user or a job; a command, which the
user waits for."""


def any_of(*authors: Author) -> Author:
    """Who can have changed a file if each of `authors` could."""
    return max(authors, key=get_args(Author).index)


class ChangeAuthors:
    """Remembers what the wall covers: no command that begins later can change it.

    The mounts lie on files and folders, not on paths. So once the user has replaced one, commands
    that run may change what is there now. What is covered stays open: nothing else can get the
    inode of an open file.
    """

    def __init__(self) -> None:
        self._opened: dict[Path, int] = {}
        self._finish = weakref.finalize(self, close_all, self._opened)

    def note(self, covered: Iterable[Path]) -> None:
        """Note that all commands from now on begin with these paths `covered`. Blocking.

        What has a second name does not count: it may lie where a command can write. What cannot be
        kept open counts as replaced; half of the files that a process may open are for others.
        """
        self.release()
        most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], _USUAL_LIMIT) // 2
        for path in covered:
            with suppress(OSError):
                files = files_of(path)
                if files is not None and all(file.lstat().st_nlink == 1 for file in files):
                    self._opened[path] = REPLACED
                    self._open(path, most)

    def _open(self, path: Path, most: int) -> None:
        opened = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        if opened < most:  # the smallest number that is free
            self._opened[path] = opened
        else:
            os.close(opened)

    def forget(self, paths: Iterable[Path]) -> None:
        """Note that commands may have changed what was at `paths`."""
        close_all({path: self._opened.pop(path, REPLACED) for path in paths})

    def author_of(self, path: Path, since: Author) -> Author:
        """Who changed or deleted `path`. Blocking.

        Args:
            path: The file or folder.
            since: Who could change what is not covered since the last look.
        """
        place = next((each for each in (path, *path.parents) if each in self._opened), None)
        if place is None:
            return since
        if is_at(place, self._opened[place]):
            return "user"
        close_all({place: self._opened[place]})
        self._opened[place] = REPLACED
        return "either"

    def release(self) -> None:
        """Close what is open, and forget all: no command runs or will run."""
        close_all(self._opened)
