"""Makes sure that this program's files have no second name under which a command could change them.

uv and conda link installed files from a cache, and link the same files into environments of
projects. A command in the sandbox may write there, and would change this program.
"""

import csv
import os
import shutil
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from itertools import chain
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
from agent_tui.safe_paths import real_path

_PLUGINS: Final = "agent_tui."
"""How the groups of our plugins' entry points begin."""

_METADATA: Final = frozenset({".dist-info", ".egg-info"})
"""How the names of folders end that say what a distribution brings."""


def separate_own_files() -> str:
    """Replace files of this program that have a second name by copies. Blocking.

    It looks only if packages were installed since the last time, or if files could not be replaced
    in a folder that it may write.

    Returns:
        A notice for the user; empty if nothing was replaced.
    """
    packages = Path(platformdirs.__file__).parents[1]
    status = packages.stat()
    may_write = os.access(packages, os.W_OK)
    version = f"{status.st_ino} {status.st_mtime_ns} {may_write}"
    now = os.fsencode(f"{packages}\n{sys.prefix}\n{version}\n")
    name = f"{zlib.crc32(os.fsencode(packages)):08x}"
    seen = user_data_dir() / "own-files" / name
    with suppress(OSError):
        if read_regular_file(seen) == now:
            return ""
    shared = find_shared_files()
    replaced = sum(map(_replace_by_copy, shared))
    if replaced == len(shared) or not may_write:
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
    """The files that have a second name and that a start of this program runs or follows.

    These are its own, those of all distributions it imports, with bytecode, which installers do not
    list, and those of its virtual environment: ``pyvenv.cfg`` names the interpreter.
    """
    packages = Path(platformdirs.__file__).parents[1]
    places = {str(Path(agent_tui.__file__).parent), str(packages / "__pycache__")}
    for found in _distributions():
        listed = csv.reader((found.read_text("RECORD") or "").splitlines())
        names = {name if name[:2] == ".." else name.partition("/")[0] for name, *_ in listed}
        places.update(str(found.locate_file(name)) for name in names)
    shared = {Path(path) for place in places for path in _shared_at(place)}
    interpreter = [real_path(Path(sys.executable))] if sys.executable else []
    others = chain(_files_of_environment(packages), interpreter)
    return sorted(shared.union(filter(_has_second_name, others)))


def _files_of_environment(packages: Path) -> Iterator[Path]:
    """All files of the virtual environment in which we run; none outside of one.

    Of `packages` that nothing has imported, as a ``.pth`` file does, there is only the metadata,
    which may name a plugin.
    """
    if sys.prefix == sys.base_prefix:
        return
    started = set(_folders_of_modules(packages))
    for place, folders, names in os.walk(sys.prefix):
        if place.endswith(packages.name) and Path(place).samefile(packages):
            folders[:] = [
                name for name in folders if name in started or Path(name).suffix in _METADATA
            ]
        yield from (Path(place, name) for name in names)


def _folders_of_modules(packages: Path) -> Iterator[str]:
    """The folders in `packages` from which modules were imported."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and (path := Path(file)).is_relative_to(packages):
            yield path.relative_to(packages).parts[0]


def _shared_at(place: str) -> Iterator[str]:
    """The shared files among `place` and all below it; of thousands, no `Path` is made of each."""
    if not Path(place).is_dir():
        yield from filter(_is_shared, (place,))
    folders = [place]
    for folder in folders:  # it grows meanwhile
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_symlink() or _has_more_names(entry):
                    yield from filter(_is_shared, (entry.path,))


def _has_more_names(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_nlink > 1
    except OSError:
        return False


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


def _is_shared(name: str) -> bool:
    """Whether `name` is a file with several names, or a link to one elsewhere."""
    path = Path(name)
    try:
        if path.is_symlink():
            return path.is_file() and not real_path(path).is_relative_to(real_path(path.parent))
    except OSError:
        return False
    return _has_second_name(path)


def _has_second_name(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


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
