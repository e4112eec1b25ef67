"""Where programs that run outside the sandbox are looked up: not in folders commands may write.

A command in the sandbox may put a ``git`` into ``.venv/bin``, which is on ``PATH`` in many shells.
The folders are known to the whole program, as programs are started everywhere in it.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

_written: set[str] = set()


def distrust_programs_in(folders: Iterable[Path]) -> None:
    """Commands may write `folders` from now on, or could before."""
    _written.update(os.path.realpath(folder).rstrip(os.sep) + os.sep for folder in folders)


def trusted_path(path: str | None) -> str:
    """`path`, as ``PATH`` has it, without folders that commands may write, and relative ones."""
    entries = (path or os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(is_trusted, entries)) or os.defpath


def trusted_first(path: str) -> str:
    """`path` with the folders last that commands may write."""
    return os.pathsep.join(sorted(path.split(os.pathsep), key=lambda entry: not is_trusted(entry)))


def find_program(name: str, path: str | None = None) -> str | None:
    """Where the program `name` is; None where it is nowhere that is trusted.

    Args:
        name: Without a folder.
        path: As ``PATH`` has it; None for ours.
    """
    return shutil.which(name, path=trusted_path(os.environ.get("PATH") if path is None else path))


def found_command(command: Sequence[str]) -> list[str]:
    """`command` with the place of its program.

    Raises:
        OSError: It is nowhere that is trusted.
    """
    if (program := find_program(command[0])) is None:
        raise FileNotFoundError(command[0])
    return [program, *command[1:]]


def is_trusted(entry: str) -> bool:
    """Whether the folder `entry` is absolute, and commands may not write it."""
    real = os.path.realpath(entry) + os.sep
    return entry.startswith(os.sep) and not any(real.startswith(folder) for folder in _written)
