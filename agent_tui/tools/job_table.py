"""The background commands of a conversation: the running ones, and how others ended."""

import asyncio
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from agent_tui.errors import ToolError
from agent_tui.messages import Job
from agent_tui.tools.processes.shell import ShellCommand, ending_of

MAX_RUNNING = 16
"""More at a time are likely a mistake: each may be a server or a build."""

_MOST_DIGITS = 10
"""Digits; a longer number is not a job id, whatever a session file says."""

_MAX_ENDED = 50
"""How many ended commands are remembered."""


class BackgroundCommand:
    """A background command, and how it ended.

    Args:
        id: Its id.
        command: The command that runs.

    Attributes:
        reached_at: The address of a server that it started in the sandbox, or why the user cannot
            reach it; empty if unknown.
        is_hidden: Whether the model knows nothing of it: the user ran it outside the context.
        was_stopped: Whether the user or the model stopped it.
    """

    def __init__(self, id: str, command: ShellCommand) -> None:
        self.id = id
        self.command = command
        self.reached_at = ""
        self.is_hidden = False
        self._since = time.time_ns() // 1_000_000 - int(command.elapsed_s * 1_000)
        self.was_stopped = False

    @property
    def is_running(self) -> bool:
        """Whether any of its processes runs."""
        return self.command.is_running

    @property
    def ending(self) -> str:
        """How it ended, in one phrase; empty while it runs."""
        command = self.command
        if command.is_running:
            return ""
        code = command.exit_code
        if self.was_stopped or code is None:
            return f"stopped after {command.elapsed_s:.0f} s"
        return f"{ending_of(code, command.excess)} after {command.elapsed_s:.0f} s"

    @property
    def state(self) -> str:
        """Its state, in one phrase."""
        reached = f"; listens at {self.reached_at}" if self.reached_at else ""
        return self.ending or f"running for {self.command.elapsed_s:.0f} s{reached}"

    @property
    def fact(self) -> Job:
        """The job as a value."""
        return Job(
            id=self.id, command=self.command.order.command, since=self._since, ending=self.ending
        )

    async def stop(self) -> None:
        """Stop all of its processes, and wait until they are gone."""
        if self.is_running:
            self.was_stopped = True
            await self.command.stop()


class JobTable:
    """The background commands of the conversation; they end when another replaces it."""

    def __init__(self) -> None:
        self._jobs: dict[str, BackgroundCommand] = {}
        self._awaited: list[ShellCommand] = []
        self._last = 0
        self._listener: Callable[[Job], None] | None = None

    @property
    def jobs(self) -> tuple[BackgroundCommand, ...]:
        """All running ones, and the latest that have ended, oldest first."""
        return tuple(self._jobs.values())

    @property
    def running(self) -> tuple[BackgroundCommand, ...]:
        """The running ones, oldest first."""
        return tuple(job for job in self._jobs.values() if job.is_running)

    @property
    def seen(self) -> tuple[BackgroundCommand, ...]:
        """Of `jobs`, those that the model knows of."""
        return tuple(job for job in self.jobs if not job.is_hidden)

    @property
    def is_full(self) -> bool:
        """Whether the limit of running commands is reached."""
        return len(self.running) >= MAX_RUNNING

    def listen(self, listener: Callable[[Job], None]) -> None:
        """Have `listener` called with each job that begins or ends from now on."""
        self._listener = listener

    def spare(self, ids: Iterable[str]) -> None:
        """Never reuse any of `ids`: a session mentions them."""
        numbers = (int(id) for id in ids if id.isdecimal() and len(id) < _MOST_DIGITS)
        self._last = max((self._last, *numbers))

    def add(self, command: ShellCommand) -> BackgroundCommand:
        """Register the running `command` as a background command."""
        self._last += 1
        self._jobs[str(self._last)] = job = BackgroundCommand(str(self._last), command)
        command.go_unwatched(lambda: self._tell(job))
        ended = [job.id for job in self._jobs.values() if not job.is_running]
        for id in ended[:-_MAX_ENDED]:
            del self._jobs[id]
        self._tell(job)
        return job

    def hide(self, jobs: Iterable[Job]) -> None:
        """Keep `jobs` from the model."""
        for job in jobs:
            self._jobs[job.id].is_hidden = True

    @property
    def awaited(self) -> tuple[ShellCommand, ...]:
        """The commands whose results are waited for, and that `move_awaited` would move."""
        return () if self.is_full else tuple(self._awaited)

    @contextmanager
    def awaiting(self, command: ShellCommand) -> Generator[None]:
        """Let `move_awaited` move `command` to the background meanwhile."""
        self._awaited.append(command)
        try:
            yield
        finally:
            self._awaited.remove(command)

    def move_awaited(self) -> bool:
        """Move the commands that are waited for to the background; false if there are none."""
        awaited = self.awaited
        for command in awaited:
            command.move()
        return bool(awaited)

    def find(self, id: str) -> BackgroundCommand | None:
        """The job with this id; None if there is none, or it was forgotten."""
        return self._jobs.get(id)

    def require(self, id: str) -> BackgroundCommand:
        """The job with this id, for the model.

        Raises:
            ToolError: It knows of none; the text lists those that it knows.
        """
        job = self._jobs.get(id)
        if job is None or job.is_hidden:
            known = ", ".join(job.id for job in self.seen) or "none"
            raise ToolError(f"There is no background job {id!r}. Jobs: {known}.")
        return job

    async def leave(self) -> tuple[Job, ...]:
        """Stop all running jobs, and forget all; returns those that ran, without a notification."""
        running = self.running
        self._jobs.clear()
        await asyncio.gather(*(job.stop() for job in running))
        return tuple(job.fact for job in running)

    def _tell(self, job: BackgroundCommand) -> None:
        if self._listener is not None and self._jobs.get(job.id) is job:
            self._listener(job.fact)
