"""Asking other programs about themselves, without letting them hold anything up."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ANSWER_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program printed, stdout and stderr together. A negative `exit_code` is a signal."""

    exit_code: int
    text: str

    @property
    def first_line(self) -> str:
        """The first line with something on it, the way versions are given."""
        return next((line.strip() for line in self.text.splitlines() if line.strip()), "")

    @property
    def last_line(self) -> str:
        """The last line with something on it, where Python names an error."""
        return next((line.strip() for line in self.text.splitlines()[::-1] if line.strip()), "")


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """Where `name` is on the person's ``PATH``."""
    return shutil.which(name, path=environ.get("PATH", os.defpath))


def ask_program(
    argv: Sequence[str], environ: Mapping[str, str], timeout_s: float = ANSWER_WITHIN_S
) -> Answer | None:
    """Run `argv` outside the project; None if it cannot be started or does not end in time.

    Args:
        argv: Program and arguments; no shell looks at them.
        environ: Its whole environment; keep keys out of it.
        timeout_s: After that it is killed with all it started.
    """
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=os.sep,
            env=dict(environ),
            start_new_session=True,
        )
    except (OSError, ValueError):
        return None
    with child:
        try:
            printed, _ = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return None
    return Answer(child.returncode, printed.decode("utf-8", "replace"))
