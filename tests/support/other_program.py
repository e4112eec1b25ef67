"""Another program that has a session open."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_HOLD = """
import sys
from pathlib import Path
from agent_tui.sessions.log import SessionLog
with SessionLog.open(Path(sys.argv[1])):
    print("open", flush=True)
    sys.stdin.read()
"""


@contextmanager
def opened_elsewhere(path: Path) -> Generator[int]:
    """Have a process hold the session at `path`, and give its id."""
    command = [sys.executable, "-c", _HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield process.pid
        process.communicate()
