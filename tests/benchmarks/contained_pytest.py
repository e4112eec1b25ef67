"""Run pytest, and end whatever it started and left: a mutant must not get in the way of the next.

python -m tests.benchmarks.contained_pytest SECONDS PYTEST-ARGUMENTS...
"""

import ctypes
import subprocess
import sys

import psutil

OUT_OF_TIME = 124
"""Exit code where the time was up, as of ``timeout``."""

_PR_SET_CHILD_SUBREAPER = 36
"""From ``linux/prctl.h``: what loses its parent becomes a child of this process."""


def main() -> int:
    """The exit code of pytest."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    timeout_s, *arguments = sys.argv[1:]
    try:
        command = [sys.executable, "-m", "pytest", *arguments]
        code = subprocess.run(command, timeout=float(timeout_s), check=False).returncode
    except subprocess.TimeoutExpired:
        code = OUT_OF_TIME
    while left := psutil.Process().children(recursive=True):
        for process in left:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(left, timeout=1)
    return code


if __name__ == "__main__":
    sys.exit(main())
