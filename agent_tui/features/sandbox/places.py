"""Where a machine has data: hidden as a whole, unlike the folders of its system.

No list of names can tell where data is: it may be in ``/scratch``, ``/net`` or ``/export``. But
the folders of a system are known. So what else is at the top of the file system is data, and so is
any other disk that is mounted below `_HOLD_DATA`.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.features.sandbox.mounts import read_mount_points
from agent_tui.safe_paths import is_folder, is_link, real_path

_SYSTEM: Final = frozenset(
    (
        *("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "run"),
        *("sbin", "sys", "tmp", "usr", "var"),
        *("gnu", "init", "nix", "snap"),
    )
)
"""What the Filesystem Hierarchy Standard (3.0, chapter 3) names and holds no data of people, and
what Guix, WSL, Nix and snapd add. ``/tmp`` has a stand-in."""

_HOLD_DATA: Final = ("opt", "var")
"""Folders of the system in which administrators mount disks."""

_OWN_DISKS: Final = frozenset(
    ("cache", "lib", "local", "lock", "log", "mail", "opt", "run", "spool", "tmp")
)
"""What the standard (chapter 5) names in ``/var``: a part of the system even as a disk of its
own."""

_PERSONAL_VARIABLES: Final = tuple(
    f"XDG_{name}_HOME" for name in ("CONFIG", "DATA", "STATE", "CACHE")
)
"""What names the places for data and settings (XDG), which may be outside of the home folder."""

CACHE_VARIABLES: Final = (
    *("CARGO_HOME", "GOPATH", "GOMODCACHE", "GOCACHE", "UV_CACHE_DIR", "PIP_CACHE_DIR"),
    *("npm_config_cache", "NPM_CONFIG_CACHE", "npm_config_store_dir", "YARN_CACHE_FOLDER"),
    *("BUN_INSTALL_CACHE_DIR", "PRE_COMMIT_HOME", "GRADLE_USER_HOME"),
)
"""What names the places of `config.schema.SANDBOX_CACHES` elsewhere. Some also have credentials."""


def find_places(
    homes: Sequence[Path],
    data_places: Iterable[Path],
    environ: Mapping[str, str],
    caches: Iterable[Path] = (),
) -> tuple[Path, ...]:
    """What is hidden besides `homes` and temporary folders, without links. Blocking.

    Args:
        homes: Home folders, without links.
        data_places: From `find_data_places`.
        environ: Names where tools have their data and caches.
        caches: Where they have caches by default: a variable may name that place, too.
    """
    default = {real_path(cache) for cache in caches}
    personal = _named_by(_PERSONAL_VARIABLES, homes, environ)
    named = _named_by(CACHE_VARIABLES, homes, environ)
    places = [*data_places, *(each for each in named if each not in default)]
    places += [each for each in personal if not any(map(each.is_relative_to, homes))]
    for place in data_places:
        if place.name == "home":  # each folder there is one
            with suppress(OSError):
                places += place.iterdir()
    return tuple(dict.fromkeys(real_path(place) for place in places))


def _named_by(
    variables: Iterable[str], homes: Sequence[Path], environ: Mapping[str, str]
) -> Iterator[Path]:
    """The folders that `variables` name, without links, and without those around a home.

    Those at the top of the file system are data places, unless they are the system's.
    """
    for value in (environ.get(name, "") for name in variables):
        for path in map(Path, value.split(os.pathsep)):
            if path.is_absolute() and is_folder(path):
                real = real_path(path)
                holds_home = any(home.is_relative_to(real) for home in homes)
                if len(real.parts) > 2 and not holds_home:
                    yield real


def find_data_places(
    top: Path = Path(os.sep), mount_points: Iterable[Path] | None = None
) -> tuple[Path, ...]:
    """The outermost places for data, without links; also files at the top. Blocking.

    Args:
        top: The root of the file system.
        mount_points: What is mounted; None for what the kernel says.
    """
    found: set[Path] = set()
    with suppress(OSError), os.scandir(top) as entries:
        found.update(_find_at_top(top, entries))
    if mount_points is None:
        mount_points = ()
        with suppress(OSError):
            mount_points = read_mount_points(os.getpid())
    found.update(filter(lambda path: _is_data_disk(path, top), mount_points))
    return tuple(sorted(path for path in found if found.isdisjoint(path.parents)))


def _find_at_top(top: Path, entries: Iterable[os.DirEntry[str]]) -> Iterator[Path]:
    system = {top / name for name in _SYSTEM}
    for entry in entries:
        if entry.name in _SYSTEM:
            continue
        path = Path(entry.path)
        if entry.is_symlink():
            path = real_path(path)
            if is_link(path):
                continue  # it leads to itself
            around = next((folder for folder in system if path.is_relative_to(folder)), None)
            if path in (top, around) or (around and around.name not in _HOLD_DATA):
                continue  # such as ``/vmlinuz``; ``/home`` may lead to ``/var/home``
        yield path


def _is_data_disk(path: Path, top: Path) -> bool:
    is_below = any(top / name in path.parents for name in _HOLD_DATA)
    is_system = path.parent == top / "var" and path.name in _OWN_DISKS
    return is_below and not is_system and is_folder(path)
