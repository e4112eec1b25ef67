"""Files beside a session that hold what is not in it yet: the unsent draft and a partial reply."""

from contextlib import suppress
from pathlib import Path
from typing import Literal

SideSuffix = Literal[".draft", ".reply"]
_SUFFIXES: tuple[SideSuffix, ...] = (".draft", ".reply")


def side_file(session: Path, suffix: SideSuffix) -> Path:
    """The file of that kind beside the session at this path."""
    return session.with_suffix(suffix)


def move_side_files(session: Path, target: Path) -> None:
    """Move the files beside `session` along with it to `target`.

    Raises:
        OSError: One cannot be moved.
    """
    for suffix in _SUFFIXES:
        with suppress(FileNotFoundError):
            side_file(session, suffix).rename(side_file(target, suffix))
