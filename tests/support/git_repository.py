"""Git repositories that tests make, and what a call changes in them."""

import os
import stat
import subprocess
from pathlib import Path

_LONG_AGO_S = 1_000_000_000


def git(folder: Path, *words: str) -> str:
    """What git prints in `folder`."""
    environ = {
        **os.environ,
        **{
            f"GIT_{who}_{what}": "t@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    argv = ["git", *words]  # tests replace subprocess.run
    with subprocess.Popen(
        argv, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True
    ) as child:
        answer, _ = child.communicate()
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, argv)
    return answer


def age_files(folder: Path) -> None:
    """Set the times of all that is in `folder` to long ago."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (_LONG_AGO_S, _LONG_AGO_S), follow_symlinks=False)


def state_of_files(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """The mode, the time and the content of each path in `folder`; a folder has no content."""
    found: dict[str, tuple[int, int, bytes]] = {}
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[os.fspath(path)] = status.st_mode, status.st_mtime_ns, content
    return found
