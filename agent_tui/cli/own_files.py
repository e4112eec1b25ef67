"""Makes sure that this program's files have no second name under which a command could change them.

uv and conda link installed files from a cache, and link the same files into environments of
projects. A command in the sandbox may write there, and would change this program.
"""

import os
import shutil
import stat
import zlib
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Final

import platformdirs
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

import agent_tui
from agent_tui.atomic_files import replace_private_file, scratch_beside
from agent_tui.installation import DISTRIBUTION
from agent_tui.paths import user_data_dir
from agent_tui.regular_files import read_regular_file

_PLUGINS: Final = "agent_tui."
"""How the groups of our plugins' entry points begin."""


def separate_own_files() -> str:
    """Replace files of this program that have a second name by copies. Blocking.

    It looks only if packages were installed since the last time.

    Returns:
        A notice for the user; empty if nothing was replaced.
    """
    packages = Path(platformdirs.__file__).parents[1]
    status = packages.stat()
    now = os.fsencode(f"{packages}\n{status.st_ino} {status.st_mtime_ns}\n")
    name = f"{zlib.crc32(os.fsencode(packages)):08x}"
    seen = user_data_dir() / "own-files" / name
    with suppress(OSError):
        if read_regular_file(seen) == now:
            return ""
    replaced = sum(map(_replace_by_copy, find_shared_files()))
    with suppress(OSError):  # then the next start looks again
        replace_private_file(seen, now)
    if not replaced:
        return ""
    files = "1 file" if replaced == 1 else f"{replaced:,} files"
    return (
        f"{files} of agent-tui had a second name, in a package cache for example. agent-tui "
        "replaced them by copies, so that no command can change them there."
    )


def find_shared_files() -> list[Path]:
    """The files of this program, and of all distributions it imports, that have a second name.

    Installers link all files of a distribution or none, so nothing more is read if none of the
    installed ones has a linked ``METADATA``.
    """
    package = Path(agent_tui.__file__).parent
    installed = Path(platformdirs.__file__).parents[1].glob("*.dist-info/METADATA")
    if not any(map(_is_shared, (*installed, package / "__init__.py"))):
        return []
    files = {path: None for path in package.rglob("*")}
    for found in _distributions():
        for file in found.files or ():
            files[Path(str(found.locate_file(file)))] = None
    return [path for path in files if _is_shared(path)]


def _distributions() -> Iterator[Distribution]:
    """Our distribution, those of plugins, and what they require as far as it is installed."""
    pending = [DISTRIBUTION]
    for found in distributions():
        if any(entry.group.startswith(_PLUGINS) for entry in found.entry_points):
            pending.append(found.name)
    known = set(map(canonicalize_name, pending))
    for name in pending:
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        yield found
        for line in found.requires or ():
            with suppress(InvalidRequirement):
                required = canonicalize_name(Requirement(line).name)
                if required not in known:
                    known.add(required)
                    pending.append(required)


def _is_shared(path: Path) -> bool:
    """Whether `path` is a file with several names, or a link to one elsewhere."""
    try:
        status = path.stat()
        is_link = path.is_symlink() and not path.resolve().is_relative_to(path.parent.resolve())
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and (status.st_nlink > 1 or is_link)


def _replace_by_copy(path: Path) -> bool:
    """Replace `path` by a copy of its own, with the same mode, owner and times."""
    try:
        with scratch_beside(path) as scratch:
            shutil.copy2(path, scratch)
            status = path.stat()
            with suppress(OSError):  # only root may give a file to its owner
                os.chown(scratch, status.st_uid, status.st_gid)
            scratch.replace(path)
    except OSError:
        return False
    return True
