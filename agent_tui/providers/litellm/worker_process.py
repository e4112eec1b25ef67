"""One provider process and its pipes: started, spoken to, and ended without a trace."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from agent_tui.providers.keys import secret_values
from agent_tui.providers.litellm.protocol import (
    MAX_LINE_BYTES,
    Command,
    Event,
    command_line,
    parse_event,
)
from agent_tui.providers.log_file import ProcessLog

_END_GRACE_S = 2.0
_SAID_CHARS = 200
_LOOPBACK: Final = "127.0.0.1,localhost,::1"


class WorkerDiedError(Exception):
    """The process ended while something was awaited from it; says how: "was killed by ..."."""


class WorkerProcess:
    """A running worker. Events are sorted into one queue a request; None marks its death."""

    def __init__(self, process: Process, log: ProcessLog) -> None:
        self._process = process
        self._log = log
        self._queues: dict[int, asyncio.Queue[Event | None]] = {}
        self._is_alive = True
        self._why_killed = ""
        self._reading = asyncio.create_task(self._sort_events())

    @classmethod
    async def launch(cls, log_path: Path, environ: Mapping[str, str]) -> Self:
        """Start a process with `environ`; what it writes to stderr goes to the log `log_path`.

        It gets a session of its own, so that Ctrl+C in the terminal does not reach it, and runs
        outside the project, whose files must not be taken for modules or settings (``-P``).

        Raises:
            OSError: the process cannot be started.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "agent_tui.providers.litellm.worker",
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd="/",
            env=_child_environ(environ),
            limit=MAX_LINE_BYTES,
            start_new_session=True,
        )
        assert process.stderr is not None
        return cls(process, ProcessLog(process.stderr, log_path, secret_values(environ)))

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether commands still reach it."""
        return self._is_alive

    def listen(self, request_id: int) -> asyncio.Queue[Event | None]:
        """The queue of a request's events from here on."""
        queue = self._queues.setdefault(request_id, asyncio.Queue())
        if not self._is_alive:
            queue.put_nowait(None)
        return queue

    def forget(self, request_id: int) -> None:
        """Drop what still comes for a request."""
        self._queues.pop(request_id, None)

    def send(self, command: Command) -> None:
        """Send `command` without waiting until it is taken."""
        self.send_line(command_line(command))

    def send_line(self, line: bytes) -> None:
        """Send a command that is a line already; lost if the process has died."""
        assert self._process.stdin is not None
        if self._is_alive:
            self._process.stdin.write(line)

    def kill(self, why: str = "was killed") -> None:
        """End it at once; it takes no more commands. `why` is what `ending` says then."""
        self._is_alive = False
        self._why_killed = self._why_killed or why
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    async def ending(self) -> str:
        """How the process ended, once its last words have been read: "was killed by ..."."""
        try:
            status = await asyncio.wait_for(self._process.wait(), _END_GRACE_S)
        except TimeoutError:
            return "closed its output"
        if self._why_killed:
            return self._why_killed
        if status == -signal.SIGKILL:
            return "was killed by signal 9 (SIGKILL), often because the system ran out of memory"
        if status < 0:
            return f"was killed by signal {-status} ({_signal_name(-status)})"
        if status == 0:
            return "exited"
        await self._log.finish()
        said = self._log.last_line[:_SAID_CHARS].rstrip(".")
        return f"exited with status {status}" + (f": {said}" if said else "")

    async def aclose(self) -> None:
        """End it: by closing its stdin and, if that does not help, by force."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _END_GRACE_S)
        except TimeoutError:
            self.kill()
            await self._process.wait()
        await self._reading
        await self._log.finish()

    async def _sort_events(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                request_id, event = parse_event(line)
                if (queue := self._queues.get(request_id)) is not None:
                    queue.put_nowait(event)
        except ValueError:  # no event, or a line beyond the limit: the process is not itself
            self.kill("sent an unreadable line and was killed")
        finally:
            self._is_alive = False
            for queue in self._queues.values():
                queue.put_nowait(None)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _child_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without a proxy for this machine, where local model servers listen."""
    child = dict(environ)
    for name in ("NO_PROXY", "no_proxy"):
        before = child.get(name, "")
        child[name] = f"{before},{_LOOPBACK}" if before else _LOOPBACK
    return child
