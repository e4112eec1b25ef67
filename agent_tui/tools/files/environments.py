"""Which folders are environments, into which package managers put programs.

A file with the right name makes none: a command can create it beside the user's own programs.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.safe_paths import is_file, real_path, resolve_path
from agent_tui.tools.git.token_settings import read_settings

VENV_SETTINGS: Final = "pyvenv.cfg"
_PYTHON: Final = "python"
_PROGRAMS: Final = "py*"
"""How interpreters are named, PyPy included."""

_VIRTUAL_ENV: Final = "VIRTUAL_ENV"
_CONDA_PREFIX: Final = "CONDA_PREFIX"
"""Conda counts stacked environments up: ``CONDA_PREFIX_1``."""


def is_active(environment: Path, environ: Mapping[str, str]) -> bool:
    """Whether the user activated `environment`, of Python or conda, before the program started."""
    named = (
        value
        for name, value in environ.items()
        if name == _VIRTUAL_ENV or name.startswith(_CONDA_PREFIX)
    )
    return real_path(environment) in map(real_path, filter(None, named))


def is_virtual_environment(environment: Path, roots: Sequence[Path]) -> bool:
    """Whether `environment` is a virtual environment for an interpreter elsewhere.

    As for the interpreter itself, its settings name the folder where it is installed, and its
    ``python`` leads there.

    Args:
        environment: The folder around ``bin``.
        roots: Where commands write, with links resolved: no interpreter there counts.
    """
    python = real_path(environment / "bin" / _PYTHON)
    if not is_file(python) or any(map(python.is_relative_to, roots)):
        return False
    homes = interpreter_folders(environment)
    return any(python == real_path(each) for home in homes for each in home.glob(_PROGRAMS))


def may_become_environment(programs: Path) -> bool:
    """Whether only settings are missing for an environment around the folder `programs`."""
    return programs.name == "bin" and os.path.lexists(programs / _PYTHON)


def interpreter_folders(environment: Path) -> Iterator[Path]:
    """The folders with its interpreter that the settings of a virtual environment name.

    Whoever wrote these settings, the folders need not exist.
    """
    for line in read_settings(environment / VENV_SETTINGS).splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home" and value.strip():
            with suppress(OSError):  # no folder can have this name
                yield resolve_path(value.strip(), environment)
