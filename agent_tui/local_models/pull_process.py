"""A pull, in a process of its own: ``python -m agent_tui.local_models.pull_process``.

The job comes as one line of JSON on standard input, which then stays open: its end means that
the asking program is gone, and this one goes too. Reports leave as lines of JSON.
"""

import os
import sys
import threading

from agent_tui.errors import ModelFileError
from agent_tui.local_models.pull_job import JOB, REPORT, Pulled, PullFailed, Report, Steps
from agent_tui.local_models.puller import Puller


def main() -> int:
    """Carry out the job on standard input; returns the exit code."""
    # Whatever pip or a library prints belongs on standard error.
    reports = os.dup(1)
    os.dup2(2, 1)
    job = JOB.validate_json(_read_line())
    threading.Thread(target=_leave_with_parent, daemon=True).start()

    def send(report: Report) -> None:
        os.write(reports, REPORT.dump_json(report) + b"\n")

    try:
        send(Pulled(Puller(job, Steps(send)).run().name))
    except ModelFileError as error:
        send(PullFailed(error.message, error.hint))
        return 1
    except BrokenPipeError:
        return 1
    return 0


def _read_line() -> bytes:
    """The first line of standard input, and nothing after it."""
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            break
        line += piece
    return bytes(line)


def _leave_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
