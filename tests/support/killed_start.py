"""Kills a program while its sandbox starts: ``python -m tests.support.killed_start FOLDER MOMENT``.

A process of its own, as it inherits the orphans of the program. It prints, as JSON, the command
lines of those that do not end, which it then kills. MOMENT is ``file``: the program is killed once
FOLDER has a file ``reached``; or ``FIRST:STEP``: it is started again and again, and each time it
kills itself at a later call, until it is not killed. What lies in ``FOLDER/bin`` takes the place of
programs, of the launcher and of the process that adds mounts.
"""

import asyncio
import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psutil

from agent_tui.features.sandbox import landlock_launcher, mounts_process
from tests.support.patience import PATIENCE_S
from tests.support.sandbox import covering, make_sandbox, run_inside

_PR_SET_CHILD_SUBREAPER = 36
_CALLERS = ("/keeper.py", "/sandbox.py", "/mounts.py", "/subprocess.py", "/socket.py")


def main() -> None:
    """Do as the command line says."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    folder, moment = Path(sys.argv[1]), sys.argv[2]
    if moment == "file":
        left = _kill_once_reached(folder)
    else:
        left = _kill_at_calls(folder, *map(int, moment.split(":")))
    print(json.dumps(left))


def _kill_once_reached(folder: Path) -> list[str]:
    program = os.fork()
    if not program:
        _run(folder)
    while not ((reached := folder / "reached").exists() and reached.stat().st_size):
        assert os.waitpid(program, os.WNOHANG) == (0, 0)
        time.sleep(0.01)
    os.kill(program, signal.SIGKILL)
    os.waitpid(program, 0)
    (folder / "killed").touch()
    return list(_outlivers())


def _kill_at_calls(folder: Path, first: int, step: int) -> list[str]:
    left: list[str] = []
    for call in count(first, step):
        program = os.fork()
        if not program:
            _kill_self_at(call)
            _run(folder)
        _, status = os.waitpid(program, 0)
        left += _outlivers()
        if not os.WIFSIGNALED(status):
            assert status == 0
            assert call > first
            return left
    raise AssertionError("calls do not end")


def _kill_self_at(call: int) -> None:
    """Kill this process at that call of the files that start processes, in any thread."""
    calls = count(1)

    def look(frame: FrameType, event: str, _argument: object) -> None:
        if event != "c_call" or not frame.f_code.co_filename.endswith(_CALLERS):
            return
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(look)
    sys.setprofile(look)


def _run(folder: Path) -> NoReturn:
    """Run two commands in a sandbox, which mounts a new file between them, and end."""
    work, programs = folder / "work", folder / "bin"
    work.mkdir(exist_ok=True)
    (work / "new").unlink(missing_ok=True)
    for module in (landlock_launcher, mounts_process):
        if (place := programs / Path(str(module.__file__)).name).exists():
            module.__file__ = str(place)
    path = str(programs) if (programs / "landlock_launcher.py").exists() else f"{programs}:/bin"
    sandbox = make_sandbox(
        folder, parts=covering(read_only=(work / "new",)), environ={"PATH": path}
    )
    for command in ("echo > new", ":"):
        asyncio.run(run_inside(sandbox, work, command))
    sys.exit()


def _outlivers() -> Iterator[str]:
    """Our descendants that do not end, killed now."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)
        except ChildProcessError:
            return
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            yield " ".join(process.cmdline())
            process.kill()


if __name__ == "__main__":
    main()
