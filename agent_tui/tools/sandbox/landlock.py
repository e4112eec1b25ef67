"""A wall without namespaces: Landlock, seccomp and sockets that only reach this machine.

For machines where users may not create namespaces (most containers, Ubuntu's AppArmor). Landlock
grants access, so what is hidden outside the working folders is not granted. Inside a writable
folder it cannot revoke anything: `SandboxPlan.hidden` and `SandboxPlan.read_only` have no effect
there. Nor does it control what needs no open file: seeing that a file exists and its size, and
changing the mode, owner or times of the user's own files anywhere. ``/tmp`` is not available;
programs find their temporary folder by ``TMPDIR``.
"""

import base64
import ctypes
import json
import os
import platform
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_tui.tools.sandbox import landlock_launcher
from agent_tui.tools.sandbox.landlock_launcher import Order
from agent_tui.tools.sandbox.plan import SandboxPlan
from agent_tui.tools.sandbox.seccomp import filter_program

Access: TypeAlias = Literal["read", "write", "use"]

_CREATE_RULESET, _ASK_VERSION = 444, 1
_DEVICES: Final = ("null", "zero", "full", "random", "urandom")
_SHARED: Final = Path("/dev/shm")
"""Where ``multiprocessing`` creates semaphores."""
_NOT_THERE: Final = ("/dev", "/tmp", "/var/tmp", "/run", "/var/run", "/lost+found")
"""Devices, and where other programs have their sockets and files."""
_NEEDED_OF_RUN: Final = Path("/run/current-system")
"""Where NixOS has its programs."""


def landlock_abi() -> int:
    """This kernel's version of Landlock; 0 for none."""
    if sys.platform != "linux":
        return 0
    call = ctypes.CDLL(None, use_errno=True).syscall
    return max(0, int(call(_CREATE_RULESET, None, 0, _ASK_VERSION)))


def landlock_argv(plan: SandboxPlan, *, python: str = sys.executable) -> tuple[str, ...]:
    """The arguments to put before a program so that it runs as `plan` says."""
    filter_ = filter_program(platform.machine(), has_own_spaces=False)
    order = Order(
        rules=[(str(path), access) for path, access in granted(plan)],
        filter=base64.b64encode(filter_).decode(),
    )
    packed = base64.b64encode(zlib.compress(json.dumps(order).encode()))  # it may be long
    return (python, "-I", "-S", landlock_launcher.__file__, packed.decode(), "--")


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


def granted(plan: SandboxPlan) -> list[tuple[Path, Access]]:
    """The access granted to each path; what lies below a granted folder is granted too."""
    left_out = {plan.home, *plan.hidden, *map(Path, _NOT_THERE)}
    readable = [Path(os.sep), *plan.readable, _NEEDED_OF_RUN]
    working: Access = "read" if plan.is_read_only else "write"
    return [
        *((path, "read") for folder in readable for path in _without(folder, left_out - {folder})),
        *((Path("/dev") / name, "use") for name in _DEVICES),
        (_SHARED, "write"),
        *((folder, working) for folder in plan.writable),
        *((folder, "write") for folder in (plan.home_stand_in, plan.scratch, plan.gate)),
    ]


def _without(folder: Path, left_out: Iterable[Path]) -> Iterator[Path]:
    """`folder`, or its entries except `left_out`; no links, as they grant nothing."""
    within = {path for path in left_out if path.is_relative_to(folder)}
    if folder in within:
        return
    if not within:
        yield folder
        return
    try:
        entries = [Path(entry) for entry in os.scandir(folder) if not entry.is_symlink()]
    except OSError:
        return
    for entry in sorted(entries):
        yield from _without(entry, within)
