"""The kinds of wall: which one a machine supports, and the arguments that set it up.

Landlock is for machines where users may not create namespaces (most containers, Ubuntu's AppArmor).
It grants access, so what is hidden outside the working folders is not granted. Inside a writable
folder it cannot revoke anything: `SandboxPlan.hidden` and `SandboxPlan.read_only` have no effect
there. Nor does it control what needs no open file: seeing that a file exists and its size, and
changing the mode, owner or times of the user's own files anywhere. ``/tmp`` is not available;
programs find their temporary folder by ``TMPDIR``.
"""

import base64
import json
import os
import platform
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias, assert_never

from agent_tui.features.sandbox import landlock_launcher
from agent_tui.features.sandbox.kept_home import PYTHONS
from agent_tui.features.sandbox.landlock_launcher import Order
from agent_tui.features.sandbox.mounts import ISLANDS, Mount, mounts_of
from agent_tui.features.sandbox.plan import Backend, SandboxPlan
from agent_tui.features.sandbox.seccomp import MACHINES, filter_program
from agent_tui.safe_paths import real_path
from agent_tui.tools.base import TEMPORARY_PLACES

Access: TypeAlias = Literal["read", "write", "use"]

_DEVICES: Final = ("null", "zero", "full", "random", "urandom")
_SHARED: Final = Path("/dev/shm")
"""Where ``multiprocessing`` creates semaphores."""

_NOT_THERE: Final = ("/dev", "/tmp", "/var/tmp", "/run", "/var/run", "/lost+found")
"""Devices, and where other programs have their sockets and files."""

_NEEDED_OF_RUN: Final = Path("/run/current-system")
"""Where NixOS has its programs."""

_READ_ONLY_OF_PROC: Final = tuple(
    f"/proc/{name}" for name in ("sys", "sysrq-trigger", "irq", "bus", "fs")
)
_HIDDEN_OF_PROC: Final = tuple(Path(f"/proc/{name}") for name in ("kcore", "keys", "timer_list"))
"""What container runtimes protect in /proc (OCI runtime-spec, ``readonlyPaths``, ``maskedPaths``).

The kernel lets its uid 0 write there, also in a user namespace.
"""

_MOST_ISLANDS: Final = 500

_JAVA_OPTIONS: Final = ("MAVEN_OPTS", "GRADLE_OPTS", "JAVA_OPTS")
"""Java asks the system for the home folder, not ``HOME``. These are what start scripts read; the
variables that Java itself reads make it print them on each start."""


def backend_here(
    system: str,
    machine: str,
    bubblewrap_problem: Callable[[], str],
    landlock_problem: Callable[[], str],
) -> tuple[Backend, str]:
    """The best wall that works here, and why there is none if none works.

    Args:
        system: As in `sys.platform`.
        machine: As `platform.machine` returns it.
        bubblewrap_problem: Tries bubblewrap; says what is wrong, or nothing.
        landlock_problem: The same for Landlock; called only if bubblewrap does not work.
    """
    if system != "linux":
        return "none", "there is a sandbox only on Linux"
    if machine not in MACHINES:
        return "none", f"there is a sandbox only for {' and '.join(MACHINES)}"
    if not (no_bubblewrap := bubblewrap_problem()):
        return "bubblewrap", ""
    if not (no_landlock := landlock_problem()):
        return "landlock", ""
    return "none", f"{no_bubblewrap}; {no_landlock}"


def landlock_argv(plan: SandboxPlan) -> tuple[str, ...]:
    """The arguments to put before a program so that it runs as `plan` says."""
    filter_ = filter_program(platform.machine(), has_own_spaces=False)
    order = Order(
        rules=[(str(path), access) for path, access in list_grants(plan)],
        filter=base64.b64encode(filter_).decode(),
    )
    packed = base64.b64encode(zlib.compress(json.dumps(order).encode()))  # it may be long
    return (sys.executable, "-I", "-S", landlock_launcher.__file__, packed.decode(), "--")


def landlock_environ(plan: SandboxPlan, given: Mapping[str, str]) -> dict[str, str]:
    """The variables for a wall that mounts nothing over the home folder and ``/tmp``.

    Args:
        plan: What exists inside.
        given: The environment that commands get otherwise.
    """
    found = {"HOME": os.fspath(plan.home_stand_in), "TMPDIR": os.fspath(plan.scratch)}
    pythons = plan.home / PYTHONS
    place = dict(plan.caches).get(pythons, real_path(pythons))
    if place in (*plan.readable, *(folder for _, folder in plan.caches)):
        found["UV_PYTHON_INSTALL_DIR"] = given.get("UV_PYTHON_INSTALL_DIR") or os.fspath(place)
    if " " not in found["HOME"]:  # of which the scripts would make two words
        for name in _JAVA_OPTIONS:
            options = (f"-Duser.home={found['HOME']}", given.get(name))
            found[name] = " ".join(filter(None, options))
    return found


def keep_pythons(plan: SandboxPlan, folder: Path) -> SandboxPlan:
    """`plan` in which Pythons that commands install are in `folder`, if the user has none."""
    place = plan.home / PYTHONS
    if not plan.home.name or real_path(place) in plan.readable:
        return plan
    return replace(plan, caches=(*plan.caches, (place, folder)))


def link_home(plan: SandboxPlan) -> None:
    """Fill `plan.home_stand_in`, which is ``HOME`` inside, with links to what exists of home.

    The real one cannot be replaced, and programs do not treat a file that cannot be opened as
    missing: cargo then creates no package, and git reads no settings.
    """
    for path in sorted({*plan.readable, *plan.writable}):
        if plan.home in path.parents:
            place = plan.home_stand_in / path.relative_to(plan.home)
            with suppress(OSError):  # something is there, or a link to a folder around it
                if not place.exists():
                    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    place.symlink_to(path)
    make_cache_folders(plan)
    for name, folder in _caches_in_home(plan):
        link = plan.home_stand_in / name
        if not link.is_dir():  # else something in it is shown
            link.symlink_to(folder)


def make_cache_folders(plan: SandboxPlan) -> None:
    """Make the folders around `plan.caches` in the stand-in for the home folder.

    A link in place of one becomes a folder with links to what is shown of its target.
    """
    for name, _ in _caches_in_home(plan):
        for part in (*reversed(name.parents), name):
            folder = plan.home_stand_in / part
            if folder.is_symlink():
                folder.unlink()
                if part != name:
                    folder.mkdir(mode=0o700)
                    _link_shown(folder, real_path(plan.home / part), plan)
            elif part != name:
                folder.mkdir(mode=0o700, exist_ok=True)


def _caches_in_home(plan: SandboxPlan) -> Iterator[tuple[Path, Path]]:
    for place, folder in plan.caches:
        if plan.home in place.parents:
            yield place.relative_to(plan.home), folder


def _link_shown(folder: Path, real: Path, plan: SandboxPlan) -> None:
    """Link in `folder` what is shown of the folder `real`."""
    shown = (*plan.readable, *plan.writable)
    if any(real.is_relative_to(path) for path in shown):
        shown = tuple(real.iterdir())
    for path in shown:
        if real in path.parents:
            link = folder / path.relative_to(real)
            link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            link.symlink_to(path)


def list_grants(plan: SandboxPlan) -> list[tuple[Path, Access]]:
    """The access granted to each path; what lies below a granted folder is granted too."""
    left_out = {plan.home, *plan.hidden, *map(Path, _NOT_THERE)}
    readable = [Path(os.sep), *plan.readable, _NEEDED_OF_RUN]
    working: Access = "read" if plan.is_read_only else "write"
    return [
        *((path, "read") for folder in readable for path in _without(folder, left_out - {folder})),
        *((Path("/dev") / name, "use") for name in _DEVICES),
        (_SHARED, "write"),
        *((folder, working) for folder in plan.writable),
        *((folder, "write") for folder in (plan.home_stand_in, plan.scratch)),
        *((folder, "write") for _, folder in plan.caches),
    ]


def is_there(path: Path, backend: Backend) -> bool:
    """Whether commands find at `path` what the machine has there, in places of no person.

    Args:
        path: Absolute, links followed. A file in ``/tmp`` counts as there: the user may have put
            it there for the model.
        backend: The kind of wall. Landlock has no processes and no shared memory of its own.
    """
    shown = [
        _NEEDED_OF_RUN,
        TEMPORARY_PLACES[0],
        *(Path("/dev", name) for name in (*_DEVICES, "tty")),
    ]
    if backend == "landlock":
        shown.append(_SHARED)
    elif path.parts[1:2] == ("proc",):
        return not "".join(path.parts[2:3]).isdecimal()
    is_shown = any(map(path.is_relative_to, shown))
    return is_shown or not any(map(path.is_relative_to, _NOT_THERE))


def _without(folder: Path, left_out: Set[Path]) -> Iterator[Path]:
    """`folder`, or its entries except `left_out`; no links, as they grant nothing."""
    return _rest_of(folder, left_out, {around for path in left_out for around in path.parents})


def _rest_of(folder: Path, left_out: Set[Path], opened: Set[Path]) -> Iterator[Path]:
    """See `_without`; only folders in `opened` have something that is left out."""
    if folder in left_out:
        return
    if folder not in opened:
        yield folder
        return
    try:
        entries = [Path(entry) for entry in os.scandir(folder) if not entry.is_symlink()]
    except OSError:
        return
    for entry in sorted(entries):
        yield from _rest_of(entry, left_out, opened)


def bwrap_argv(
    bwrap: str, plan: SandboxPlan, *, info: int | None = None, seccomp: int | None = None
) -> tuple[str, ...]:
    """The arguments to put before a command so that it runs as `plan` says.

    Args:
        bwrap: The program.
        plan: What exists inside.
        info: A descriptor that receives the id of the first process inside.
        seccomp: A descriptor that the system call filter is read from.
    """
    words = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--as-pid-1"]  # what runs inside can neither end nor stop the first process
    words += [] if info is None else ["--info-fd", str(info)]
    words += [] if seccomp is None else ["--seccomp", str(seccomp)]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for name in _READ_ONLY_OF_PROC:
        words += ["--ro-bind-try", name, name]
    for path in _HIDDEN_OF_PROC:
        words += ["--ro-bind", "/dev/null", str(path)] if path.exists() else []
    mounts = {mount.path: mount for mount in _at_first(plan)}
    for mount in mounts.values():
        words += _words(mount, is_read_only=plan.is_read_only and mount.path != plan.gate)
        if mount.path == _NEEDED_OF_RUN.parent:
            words += ["--ro-bind-try", str(_NEEDED_OF_RUN), str(_NEEDED_OF_RUN)]
    for link, target in plan.links:
        around = next((mounts[place] for place in link.parents if place in mounts), None)
        if around is not None and around.kind == "hidden":
            words += ["--symlink", target, str(link)]
    for mount in mounts.values():
        if mount.kind == "hidden" and mount.path.is_dir():  # what is written there would be lost
            words += ["--remount-ro", str(mount.path)]
    return (*words, "--chdir", str(plan.workspace), "--")


def _at_first(plan: SandboxPlan) -> Iterator[Mount]:
    """The mounts without islands beyond the 500th, which are mounted once the wall is up.

    bubblewrap takes 9,000 arguments, and a command may create any number of repositories. A folder
    that is not in a writable one is mounted now: later it would cover what is in it.
    """
    islands = 0
    for mount in mounts_of(plan):
        is_inside = any(folder in mount.path.parents for folder in plan.writable)
        is_island = mount.kind in ISLANDS and (is_inside or mount.path.is_file())
        islands += is_island
        if islands <= _MOST_ISLANDS or not is_island:
            yield mount


def _words(mount: Mount, *, is_read_only: bool) -> Iterator[str]:
    path = os.fspath(mount.path)
    match mount.kind:
        case "stand-in" | "copied":
            yield from ("--bind", os.fspath(mount.source or path), path)
        case "readable" | "read-only":
            yield from ("--ro-bind", path, path)
        case "writable":
            yield from ("--ro-bind" if is_read_only else "--bind", path, path)
        case "pinned":
            yield from ("--bind", path, path)
        case "hidden" if mount.path.is_dir():
            yield from ("--tmpfs", path)
        case "hidden":
            yield from ("--ro-bind", os.fspath(mount.source or os.devnull), path)
        case _:
            assert_never(mount.kind)
