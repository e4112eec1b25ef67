"""The arguments with which bubblewrap sets up a wall: pure."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, assert_never

from agent_tui.tools.sandbox.mounts import ISLANDS, Mount, mounts_of
from agent_tui.tools.sandbox.plan import SandboxPlan

_READ_ONLY_OF_PROC: Final = tuple(
    f"/proc/{name}" for name in ("sys", "sysrq-trigger", "irq", "bus", "fs")
)
_HIDDEN_OF_PROC: Final = tuple(Path(f"/proc/{name}") for name in ("kcore", "keys", "timer_list"))
"""What container runtimes protect in /proc (OCI runtime-spec, ``readonlyPaths``, ``maskedPaths``).

The kernel lets its uid 0 write there, also in a user namespace.
"""
_MOST_ISLANDS: Final = 500
_NEEDED_OF_RUN: Final = Path("/run/current-system")
"""Where NixOS has its programs."""


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
    words += [] if info is None else ["--info-fd", str(info)]
    words += [] if seccomp is None else ["--seccomp", str(seccomp)]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for name in _READ_ONLY_OF_PROC:
        words += ["--ro-bind-try", name, name]
    for path in _HIDDEN_OF_PROC:
        words += ["--ro-bind", "/dev/null", str(path)] if path.exists() else []
    for mount in _at_first(mounts_of(plan)):
        words += _words(mount, is_read_only=plan.is_read_only and mount.path != plan.gate)
        if mount.path == _NEEDED_OF_RUN.parent:
            words += ["--ro-bind-try", str(_NEEDED_OF_RUN), str(_NEEDED_OF_RUN)]
    return (*words, "--chdir", str(plan.workspace), "--")


def _at_first(mounts: Iterable[Mount]) -> Iterator[Mount]:
    """`mounts` without islands beyond the 500th, which are mounted once the wall is up.

    bubblewrap takes 9,000 arguments, and a command may create any number of repositories.
    """
    islands = 0
    for mount in mounts:
        islands += mount.kind in ISLANDS
        if islands <= _MOST_ISLANDS or mount.kind not in ISLANDS:
            yield mount


def _words(mount: Mount, *, is_read_only: bool) -> Iterator[str]:
    path = os.fspath(mount.path)
    match mount.kind:
        case "stand-in":
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
            yield from ("--ro-bind", "/dev/null", path)
        case _:
            assert_never(mount.kind)
