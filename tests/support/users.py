"""Who runs a part of the program in tests: whoever runs them and, where that is root, another."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_NOBODY = 65534


@dataclass(frozen=True)
class User:
    """Who runs the program and its commands."""

    name: str
    uid: int
    argv: tuple[str, ...]


def users() -> Iterator[User]:
    """Whoever runs the tests, and, where that is root, another."""
    yield User("self", os.getuid(), (sys.executable,))
    setpriv, python = shutil.which("setpriv"), shutil.which("python3", path="/usr/bin:/bin")
    if os.geteuid() == 0 and setpriv and python:
        words = [setpriv, f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
        yield User("nobody", _NOBODY, (*words, "--bounding-set=-all", "--", python))


@cache
def can_run(user: User, module: str) -> bool:
    """Whether the user's interpreter imports `module` from where the tests run it."""
    return _start(user, "-c", f"import {module}").returncode == 0


def run_module(user: User, module: str, *arguments: str) -> str:
    """What `module` of the tests prints, run by `user`."""
    done = _start(user, "-m", module, *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _start(user: User, *words: str) -> subprocess.CompletedProcess[str]:
    paths = [str(_ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    argv = [*user.argv, *words]
    return subprocess.run(argv, env=environ, cwd="/", capture_output=True, text=True)


@contextmanager
def system_folders(user: User) -> Generator[list[Path]]:
    """A new folder of the user's in each of the system's own that may be written, else in /tmp.

    Their names are short, as those of sockets must be.
    """
    with ExitStack() as stack:
        made: list[Path] = []
        parents = [parent for parent in ("/opt", "/srv") if os.access(parent, os.W_OK)]
        for parent in parents or ["/tmp"]:
            folder = tempfile.mkdtemp(prefix="agent-tui-", dir=parent)
            stack.callback(shutil.rmtree, folder)
            os.chown(folder, user.uid, -1)
            made.append(Path(folder))
        yield made
