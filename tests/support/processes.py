"""Which processes there are, told by a marker in their command lines."""

import os
import time

import psutil

from tests.support.patience import PATIENCE_S


def nap(number: int) -> str:
    """A ``sleep`` of months that only this test run starts: `alive` finds none of another's."""
    return f"sleep {nap_seconds(number)}"


def nap_seconds(number: int) -> str:
    """How long `nap` sleeps; no number of one run begins or ends that of another."""
    return f"9{os.getpid():07}.{number:05}"


def alive(marker: str) -> list[int]:
    """Processes whose command line holds `marker`."""
    found: list[int] = []
    for process in psutil.process_iter(["cmdline", "status"]):
        command = " ".join(process.info["cmdline"] or ())
        if marker in command and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def gone(marker: str, patience_s: float = PATIENCE_S) -> bool:
    """Whether all processes with `marker` end within the time, which only a failure takes up."""
    deadline = time.monotonic() + patience_s
    while alive(marker):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def fugitives(seconds: str, ready: str) -> str:
    """A command that starts all kinds of processes hard to end, each ``sleep SECONDS``.

    In the background, in a session of its own, forked twice, heedless of SIGTERM, holding the
    output open and not, stopped, without the environment. `ready` is a file that is there once
    all are.
    """
    nap = f"sleep {seconds}"
    return (
        f"{nap} & setsid {nap} & (setsid {nap} >/dev/null 2>&1 </dev/null &) ; "
        f"(trap '' TERM HUP INT; exec {nap}) & "
        f"(trap '' TERM; setsid nohup {nap} >/dev/null 2>&1 &); "
        f"(setsid sh -c 'kill -STOP $$; exec {nap}' &); env -i /bin/sh -c 'exec setsid {nap}' & "
        f"while [ $(pgrep -fc '^sleep {seconds}') -lt 6 ]; do sleep 0.01; done; "
        f"touch {ready}; {nap}"
    )
