"""litellm's process: starts it when needed, talks to it, and replaces it when it dies."""

import asyncio
import contextlib
import itertools
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Final, Self

from agent_tui.durations import shortest
from agent_tui.features.litellm.protocol import (
    MAX_LINE_BYTES,
    Cancel,
    Ended,
    Start,
    Warm,
    Warmed,
    WorkerCommand,
    WorkerEvent,
    command_line,
    parse_event,
)
from agent_tui.providers.base import ProviderError
from agent_tui.providers.keys import secret_values
from agent_tui.providers.log_file import ProcessLog
from agent_tui.providers.silence import SilenceLimits, Wait
from agent_tui.providers.transport.serving import ServedEvent
from agent_tui.providers.wires.base import Attempt

_STUCK_AFTER_S = 120.0
"""Seconds; a process signals every two seconds, but a machine that swaps may delay it."""

_CHECKS = 4
"""How often a process must be found silent: the program itself may have been stopped."""

_WARM_ID: Final = 0
_END_GRACE_S = 2.0
_SAID_CHARS = 200
_LOOPBACK: Final = "127.0.0.1,localhost,::1"


class _DiedError(Exception):
    """The process ended while we waited for it; says how: "was killed by ..."."""


class _Process:
    """A running process. Events are sorted into one queue per request; None marks its death."""

    def __init__(self, process: Process, log: ProcessLog) -> None:
        self._process = process
        self._log = log
        self._queues: dict[int, asyncio.Queue[WorkerEvent | None]] = {}
        self._is_alive = True
        self._why_killed = ""
        self._reading = asyncio.create_task(self._sort_events())

    @classmethod
    async def launch(cls, log_path: Path, environ: Mapping[str, str]) -> Self:
        """Start a process with `environ`; its stderr goes to the log `log_path`.

        It gets its own session, so that Ctrl+C in the terminal does not reach it, and runs outside
        the project, so that no project file is taken for a module or settings (``-P``).

        Raises:
            OSError: The process cannot be started.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "agent_tui.features.litellm.worker",
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
        """The process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it still accepts commands."""
        return self._is_alive

    def listen(self, request_id: int) -> asyncio.Queue[WorkerEvent | None]:
        """The queue for the events of a request from now on."""
        queue = self._queues.setdefault(request_id, asyncio.Queue())
        if not self._is_alive:
            queue.put_nowait(None)
        return queue

    def forget(self, request_id: int) -> None:
        """Drop further events of a request."""
        self._queues.pop(request_id, None)

    def send(self, command: WorkerCommand) -> None:
        """Send `command` without waiting for it to be read."""
        self.send_line(command_line(command))

    def send_line(self, line: bytes) -> None:
        """Send an encoded command; lost if the process has died."""
        assert self._process.stdin is not None
        if self._is_alive:
            self._process.stdin.write(line)

    def kill(self, why: str = "was killed") -> None:
        """Kill the process at once; it accepts no more commands. `ending` then returns `why`."""
        self._is_alive = False
        self._why_killed = self._why_killed or why
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    async def ending(self) -> str:
        """How the process ended, after its last output was read: "was killed by ..."."""
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
        """End the process: close its stdin and, if that does not help, kill it."""
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
        except ValueError:  # not an event, or a line beyond the limit: the process is broken
            self.kill("sent an unreadable line and was killed")
        finally:
            self._is_alive = False
            for queue in self._queues.values():
                queue.put_nowait(None)


class LiteLlmProcess:
    """Manages the process: starts it, sends it requests, replaces it when it dies.

    Args:
        log_path: File to which the process's stderr is appended.
        environ: The process's environment, which holds the keys.
        stuck_after_s: Seconds without a sign of life after which the process is killed.
    """

    def __init__(
        self, log_path: Path, environ: Mapping[str, str], stuck_after_s: float | None = None
    ) -> None:
        self._log_path = log_path
        self._environ = environ
        self._stuck_after_s = stuck_after_s or _STUCK_AFTER_S
        self._ids = itertools.count(_WARM_ID + 1)
        self._launching: asyncio.Task[_Process] | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self.warm_problem = ""
        """Why the last `warm` failed; empty if it did not."""

    @property
    def pid(self) -> int | None:
        """The process id; None if there is no process."""
        if self._launching is None or not self._launching.done():
            return None
        return None if self._launching.exception() else self._launching.result().pid

    async def warm(self) -> None:
        """Have the process prepare for its first request, which takes seconds."""
        with contextlib.suppress(_DiedError):
            process = await self._running()
            events = process.listen(_WARM_ID)
            process.send(Warm())
            match await events.get():
                case None:
                    events.put_nowait(None)  # for others that wait for the same process
                case Warmed(problem):
                    self.warm_problem = problem
                case _:
                    pass

    async def events(
        self, way: Attempt, silence: SilenceLimits
    ) -> AsyncGenerator[ServedEvent, None]:
        """Send a request and yield the events of its answer; closing this closes the connection.

        If the process dies before the first chunk, the request is resent once.

        Raises:
            ProviderError: The process died, or could not be started.
        """
        request_id = next(self._ids)
        line = await asyncio.to_thread(_start_line, request_id, way, silence)
        for is_last_attempt in (False, True):
            has_begun = False
            try:
                async with aclosing(self._attempt(request_id, line)) as events:
                    async for event in events:
                        has_begun |= not isinstance(event, Wait)
                        yield event
                return
            except _DiedError as error:
                if has_begun or is_last_attempt:
                    raise ProviderError(
                        "crashed",
                        f"{way.request.model.name}: litellm's process {error}.",
                        f"Try again, or see {self._log_path}.",
                    ) from error

    def retire(self) -> None:
        """End the process; the next request starts one with the environment at that time.

        Requests in progress end as crashed.
        """
        if self._launching is not None:
            retiring = asyncio.create_task(_end(self._launching))
            self._launching = None
            self._retiring.add(retiring)
            retiring.add_done_callback(self._retiring.discard)

    async def aclose(self) -> None:
        """End the process and wait until it is gone."""
        self.retire()
        await asyncio.gather(*self._retiring)

    async def _attempt(self, request_id: int, line: bytes) -> AsyncGenerator[ServedEvent, None]:
        process = await self._running()
        events = process.listen(request_id)
        process.send_line(line)
        has_ended = False
        try:
            while True:
                match await self._next_event(events, process):
                    case None:
                        has_ended = True
                        raise _DiedError(await process.ending())
                    case Ended():
                        has_ended = True
                        return
                    case Warmed():
                        pass
                    case event:
                        yield event
        finally:
            if not has_ended:
                process.send(Cancel(request_id))
            process.forget(request_id)

    async def _running(self) -> _Process:
        if self._launching is None or _is_over(self._launching):
            self._launching = asyncio.create_task(_Process.launch(self._log_path, self._environ))
        try:
            return await asyncio.shield(self._launching)
        except OSError as error:
            raise _DiedError(f"could not be started: {error}") from error

    async def _next_event(
        self, events: "asyncio.Queue[WorkerEvent | None]", process: _Process
    ) -> WorkerEvent | None:
        """The next event, which may be just a sign of life.

        Raises:
            _DiedError: None came in time, whatever the servers do; the process was killed.
        """
        for _ in range(_CHECKS):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._stuck_after_s / _CHECKS):
                    return await events.get()
        stuck = f"did not respond for {shortest(self._stuck_after_s)} and was killed"
        process.kill(stuck)
        raise _DiedError(stuck)


def _start_line(request_id: int, way: Attempt, silence: SilenceLimits) -> bytes:
    return command_line(Start(request_id, way.build_request(), silence))


async def _end(launching: "asyncio.Task[_Process]") -> None:
    with contextlib.suppress(OSError):  # it never started
        process = await launching
        await process.aclose()


def _is_over(launching: "asyncio.Task[_Process]") -> bool:
    """Whether a launch failed or its process has died since."""
    if not launching.done():
        return False
    return launching.exception() is not None or not launching.result().is_alive


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
