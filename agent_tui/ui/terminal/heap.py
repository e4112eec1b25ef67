"""The C library's heap in the process of the screen."""

import ctypes
from contextlib import suppress

_M_ARENA_MAX = -8
"""From glibc's malloc.h."""


def use_one_heap() -> None:
    """Let all threads share one heap; only glibc has several. Call it before the first thread.

    Modules are loaded in a thread, whose own heap would keep 5 MB of free space. Threads do not
    wait longer for a shared one, as Python runs one of them at a time.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def return_free_memory() -> None:
    """Give the heap's free pages back to the system, which takes less than 1 ms; glibc only."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
