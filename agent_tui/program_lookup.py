"""Looks up programs to run outside the sandbox, but not in folders that commands may write.

A command in the sandbox may put a ``git`` into ``.venv/bin``, which is on ``PATH`` in many shells.
The list of folders is global, because all parts of the program start programs.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

_written: set[str] = set()


def distrust_programs_in(folders: Iterable[Path]) -> None:
    """Mark `folders` as writable by commands, now or earlier."""
    _written.update(os.path.realpath(folder).rstrip(os.sep) + os.sep for folder in folders)


def keep_trusted(path: str | None) -> str:
    """`path`, a ``PATH``, without relative folders and folders that commands may write."""
    entries = (path or os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(is_trusted, entries)) or os.defpath


def order_by_trust(path: str) -> str:
    """`path` with folders that commands may write moved to the end."""
    return os.pathsep.join(sorted(path.split(os.pathsep), key=lambda entry: not is_trusted(entry)))


def find_program(name: str, path: str | None = None) -> str | None:
    """The path of the program `name`; None if no trusted folder has it.

    Args:
        name: The name without a folder.
        path: A ``PATH``; None for our own.
    """
    return shutil.which(name, path=keep_trusted(os.environ.get("PATH") if path is None else path))


def resolve_command(command: Sequence[str]) -> list[str]:
    """`command` with the path of its program.

    Raises:
        OSError: No trusted folder has it.
    """
    if (program := find_program(command[0])) is None:
        raise FileNotFoundError(command[0])
    return [program, *command[1:]]


def is_trusted(entry: str) -> bool:
    """Whether the folder `entry` is absolute, and commands may not write it."""
    real = os.path.realpath(entry) + os.sep
    return entry.startswith(os.sep) and not any(real.startswith(folder) for folder in _written)
