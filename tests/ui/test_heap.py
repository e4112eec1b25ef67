"""The heap of the C library: one for all threads."""

import platform
import subprocess
import sys

import pytest

from agent_tui.ui.terminal.heap import return_free_memory

HEAPS = """
import ctypes, sys, threading
from agent_tui.ui.terminal.heap import use_one_heap
if sys.argv[1] == "one":
    use_one_heap()
kept, meet = [], threading.Barrier(4)
def work():
    meet.wait()
    kept.append([bytes(5_000) for _ in range(500)])
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has several heaps")
@pytest.mark.parametrize(("asked", "has_several"), [("one", False), ("none", True)])
def test_threads_share_one_heap_once_it_is_asked_for(asked: str, *, has_several: bool):
    done = subprocess.run(
        [sys.executable, "-c", HEAPS, asked], capture_output=True, text=True, check=True
    )
    assert (done.stdout.count("<heap nr=") > 1) == has_several


def test_free_memory_is_returned_again_and_again():
    return_free_memory()
    return_free_memory()
