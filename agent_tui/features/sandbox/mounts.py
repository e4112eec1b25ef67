"""What is mounted over what inside a wall, and remounting what was lost: pure except `relay`."""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_tui.errors import ToolError
from agent_tui.features.sandbox import mounts_process
from agent_tui.features.sandbox.plan import SandboxPlan
from agent_tui.safe_paths import real_path
from agent_tui.tools.base import TEMPORARY_PLACES
from agent_tui.tools.processes.keeper import ProcessKeeper

MountKind: TypeAlias = Literal[
    "stand-in", "readable", "writable", "pinned", "read-only", "hidden", "copied"
]
_WEIGHTS: Final[dict[MountKind, int]] = {
    "stand-in": 0,
    "readable": 1,
    "writable": 2,
    "pinned": 3,
    "read-only": 4,
    "hidden": 5,
    "copied": 6,
}
ISLANDS: Final = frozenset(("pinned", "read-only", "hidden", "copied"))
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")
_PATIENCE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount at `path`.

    A stand-in or a copy is the folder `source`, and of a hidden file that file is shown, if there
    is one; all others show what is there outside, or nothing of it. A pinned folder stays as
    writable as before: the kernel does not rename mount points, but it does rename a folder that
    contains one. Another could then be put in its place, or a hidden file's
    folder be moved to where nobody looks.
    """

    kind: MountKind
    path: Path
    source: Path | None = None


def mounts_of(plan: SandboxPlan) -> tuple[Mount, ...]:
    """All mounts of `plan` in mounting order: deeper paths after those around them.

    A mount that would not change what the one around it shows is left out.
    """
    versions = dict(plan.versions)
    found = [
        *(Mount("stand-in", path, plan.scratch) for path in TEMPORARY_PLACES if path.is_dir()),
        *(Mount("stand-in", home, plan.home_stand_in) for home in (plan.home,) if home.name),
        *(Mount("stand-in", path, folder) for path, folder in plan.caches),
        *(Mount("hidden", path, versions.get(path)) for path in plan.hidden),
        *(Mount("readable", path) for path in (*plan.readable, plan.copies_folder) if path),
        *(Mount("writable", path) for path in (*plan.writable, plan.gate)),
    ]
    if not plan.is_read_only:
        found += [Mount("pinned", path) for path in _folders_around(plan)]
        found += [Mount("read-only", path) for path in plan.read_only]
        found += [Mount("copied", path, copy) for path, copy in plan.copies]
    by_path: dict[Path, Mount] = {}
    for mount in sorted(found, key=lambda mount: _WEIGHTS[mount.kind]):
        by_path[mount.path] = mount
    kept: dict[Path, Mount] = {}
    for path in sorted(by_path, key=lambda path: path.parts):
        around = next((kept[place] for place in path.parents if place in kept), None)
        if not _is_shown_by(around, by_path[path]):
            kept[path] = by_path[path]
    return tuple(kept.values())


@lru_cache(maxsize=4)
def islands_of(plan: SandboxPlan) -> tuple[Mount, ...]:
    """The mounts that disappear when what they cover is replaced outside."""
    return tuple(mount for mount in mounts_of(plan) if mount.kind in ISLANDS)


def close_ways(plan: SandboxPlan) -> None:
    """Write-protect stand-in folders that exist only as the way to something.

    What a command put there would silently disappear with the wall. Not in hidden folders, where
    programs keep unimportant files, and not around caches. What a link in the stand-in leads to is
    the user's and stays.
    """
    laid = {mount.path for mount in mounts_of(plan) if plan.home in mount.path.parents}
    laid -= {path for path, _ in plan.caches}
    ways = {
        folder
        for path in laid
        for folder in path.parents
        if plan.home in folder.parents and laid.isdisjoint((folder, *folder.parents))
    }
    made: list[Path] = []
    for way in sorted(ways):
        folder = plan.home_stand_in / (below := way.relative_to(plan.home))
        if real_path(folder) == folder and not any(part.startswith(".") for part in below.parts):
            folder.mkdir(exist_ok=True)
            made.append(folder)
    for folder in reversed(made):  # none can be created in one that is protected
        folder.chmod(0o500)


def read_mount_points(pid: int) -> frozenset[Path]:
    """The mount points that the process `pid` sees.

    Raises:
        OSError: There is no such process.
    """
    return _mount_points(Path(f"/proc/{pid}/mountinfo").read_bytes())


@lru_cache(maxsize=4)
def _mount_points(table: bytes) -> frozenset[Path]:
    paths = (line.split(b" ", 5)[4] for line in table.splitlines())
    return frozenset(
        Path(os.fsdecode(_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), path)))
        for path in paths
    )


def relay(keeper: ProcessKeeper, pid: int, laid: Iterable[Mount], lifted: Iterable[Path]) -> str:
    """Add and remove mounts as seen by the process `pid`. Blocking.

    Args:
        keeper: Starts the process that does it, outside.
        pid: A process inside, by its id outside.
        laid: Mounts to add.
        lifted: Mount points to remove.

    Returns:
        Why it failed; empty if it succeeded.
    """
    words: list[tuple[str, str, str]] = [("lifted", os.fspath(path), "") for path in lifted]
    words += [(each.kind, os.fspath(each.path), os.fspath(each.source or "")) for each in laid]
    try:
        code, said = keeper.run(
            [sys.executable, "-I", "-S", mounts_process.__file__, str(pid)],
            cwd=Path(os.sep),
            environ={},
            timeout_s=_PATIENCE_S,
            stdin=json.dumps(words).encode(),
        )
    except (OSError, ToolError) as error:
        return str(error)
    if code == 0:
        return ""
    return said.decode("utf-8", "replace").strip().rpartition("\n")[2] or "it was killed"


def _is_shown_by(around: Mount | None, mount: Mount) -> bool:
    """Whether `mount` adds nothing to `around`, the nearest mount around it."""
    kind = "system" if around is None else around.kind
    match mount.kind:
        case "stand-in" | "copied":
            return False
        case "hidden":
            return kind in ("hidden", "stand-in")
        case "readable":
            return kind not in ("hidden", "stand-in")
        case "writable":
            return kind in ("writable", "pinned")
        case "pinned" | "read-only":
            return kind not in ("writable", "pinned")


def _folders_around(plan: SandboxPlan) -> Iterator[Path]:
    """The folders between a writable folder and what is covered in it.

    A writable folder inside another counts too: a link in its place would lead the next wall
    elsewhere.
    """
    covered = (*plan.read_only, *plan.hidden, *(path for path, _ in plan.copies))
    for path in (*covered, *plan.writable):
        roots = [root for root in plan.writable if root in path.parents]
        if roots:
            outermost = min(roots, key=lambda root: len(root.parts))
            if path in plan.writable:
                yield path
            yield from (folder for folder in path.parents if outermost in folder.parents)
