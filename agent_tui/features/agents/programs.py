"""Ends the program that has a session open."""

import os
import signal
from pathlib import Path

from agent_tui.errors import AgentTuiError
from agent_tui.sessions.file.writer import running_session


def stop_program(path: Path) -> int:
    """Send SIGTERM to the program that has the session at `path` open now; returns its pid.

    The program that holds the session's lock is asked for its process id again, so that the signal
    never reaches another one that got the id meanwhile.

    Raises:
        AgentTuiError: No other program has it open, or the system refuses.
    """
    running = running_session(path)
    if running is None or running.pid <= 1:
        raise AgentTuiError("No program has this session open any more.")
    if running.pid == os.getpid():
        raise AgentTuiError("This program has it open.", "/quit leaves it.")
    try:
        os.kill(running.pid, signal.SIGTERM)
    except OSError as error:
        raise AgentTuiError(f"Cannot stop process {running.pid}: {error.strerror}.") from error
    return running.pid
