"""What replaces ``/tmp`` in the sandbox, for tools that run outside it."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_tui.safe_paths import resolve_path

_TEMPORARY: Final = (Path("/tmp"), Path("/var/tmp"))


@dataclass(frozen=True, slots=True)
class Scratch:
    """The folder that commands see as ``/tmp``, so that all tools mean the same by that name.

    Args:
        folder: Its path, without links.
        shared: What lies in ``/tmp`` and is the same for commands, such as working folders.
    """

    folder: Path
    shared: tuple[Path, ...] = ()

    def real(self, path: Path) -> Path:
        """The real location of `path`, links followed.

        A file that exists only in the machine's ``/tmp``, not for commands, stays there.

        Raises:
            OSError: Links form a loop.
        """
        around = next((folder for folder in _TEMPORARY if path.is_relative_to(folder)), None)
        if around is None or any(path.is_relative_to(shared) for shared in self.shared):
            return path
        mine = self.folder / path.relative_to(around)
        if os.path.lexists(path) and not os.path.lexists(mine):
            return path
        return resolve_path(mine, self.folder)

    def holds(self, path: Path) -> bool:
        """Whether `path`, links followed, is in it."""
        return path.is_relative_to(self.folder)

    def named(self, path: Path) -> Path:
        """The path under which commands see `path`."""
        return _TEMPORARY[0] / path.relative_to(self.folder) if self.holds(path) else path
