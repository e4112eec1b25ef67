"""What commands inside the wall see and may change: pure data, the same for each backend."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Backend: TypeAlias = Literal["bubblewrap", "landlock", "none"]


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """What a wall lets through. All paths exist, are absolute and have no links in them.

    The deeper path decides: a writable folder in a readable one can be written, a hidden file in
    a writable folder is hidden.

    Args:
        workspace: Where commands start.
        writable: The folders worked in (the workspace first), their git folders, caches.
        readable: What exists of the home folder: toolchains, this program.
        hidden: Files and folders that cannot be read.
        read_only: Files and folders in writable ones that cannot be changed.
        home: The person's home folder. What is not named above does not exist there.
        home_stand_in: The folder that takes the place of `home`, with the settings of git, pip and
            npm that commands need.
        scratch: Takes the place of ``/tmp``.
        gate: Folder of the network gate's sockets, at the same path inside, writable.
        is_read_only: Nothing of `writable` can be written (plan mode).
    """

    workspace: Path
    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    read_only: tuple[Path, ...]
    home: Path
    home_stand_in: Path
    scratch: Path
    gate: Path
    is_read_only: bool = False
