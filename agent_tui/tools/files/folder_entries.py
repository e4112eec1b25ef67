"""Lists folders, also those that cannot be listed, and names the folders that builds fill."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

REBUILT_FOLDERS: Final = frozenset(
    (
        *("node_modules", "bower_components", "site-packages", "__pycache__", "__pypackages__"),
        *(".tox", ".nox", ".venv", "venv", ".mypy_cache", ".ruff_cache"),
        *(".pytest_cache", ".next", ".nuxt", ".turbo", ".gradle", ".terraform", "DerivedData"),
    )
)
"""Folders that builds and package managers fill with thousands of unimportant folders: only a
repository in one, however deep, or a file with keys directly in one counts."""


def entries_in(folder: Path) -> list[os.DirEntry[str]]:
    """What is in `folder`, by name; nothing if it cannot be listed."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)
    return []


def folders_in(folder: Path) -> list[Path]:
    """The folders in `folder`; none if it cannot be listed."""
    return [Path(entry) for entry in entries_in(folder) if entry.is_dir(follow_symlinks=False)]
