"""Walls for tests: whether one can stand on this machine, and running commands in one."""

import ctypes
import subprocess
import sys
from functools import cache

import pytest

_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_CREATE_RULESET_VERSION = 1


@cache
def has_bwrap() -> bool:
    """Whether bubblewrap is installed and may make namespaces here."""
    try:
        tried = subprocess.run(
            ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"],
            capture_output=True,
        )
    except OSError:
        return False
    return tried.returncode == 0


@cache
def has_landlock() -> bool:
    """Whether the kernel has Landlock."""
    if sys.platform != "linux":
        return False
    version = ctypes.CDLL(None).syscall(
        _LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_CREATE_RULESET_VERSION
    )
    return version > 0


needs_bwrap = pytest.mark.skipif(not has_bwrap(), reason="bubblewrap does not work here")
needs_landlock = pytest.mark.skipif(not has_landlock(), reason="the kernel has no Landlock")
