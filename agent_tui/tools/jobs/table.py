"""The background commands of a conversation: what runs, what came of the others."""

import asyncio
import time
from collections.abc import Callable, Iterable

from agent_tui.errors import ToolError
from agent_tui.messages import Job
from agent_tui.tools.processes.shell import ShellCommand, ending_of

MAX_RUNNING = 16
"""More at a time are a mistake rather than a need: each may be a server or a build."""

_MOST_DIGITS = 10
"""A longer number is none of ours, whatever a session file says."""

_MAX_ENDED = 50
"""So many that have ended can still be asked about."""


class BackgroundCommand:
    """A background command, and how it ended.

    Args:
        id: What it is asked for by.
        command: What runs.

    Attributes:
        reached_at: Where the person meets a server that it started in the sandbox, or why they
            cannot; empty where none is known.
    """

    def __init__(self, id: str, command: ShellCommand) -> None:
        self.id = id
        self.command = command
        self.reached_at = ""
        self._since = time.time_ns() // 1_000_000 - int(command.elapsed_s * 1_000)
        self._is_stopped = False

    @property
    def is_running(self) -> bool:
        """Whether anything of it runs."""
        return self.command.is_running

    @property
    def ending(self) -> str:
        """How it ended, in one phrase; empty while it runs."""
        command = self.command
        if command.is_running:
            return ""
        code = command.exit_code
        if self._is_stopped or code is None:
            return f"stopped after {command.elapsed_s:.0f} s"
        return f"{ending_of(code, command.excess)} after {command.elapsed_s:.0f} s"

    @property
    def state(self) -> str:
        """How it stands, in one phrase."""
        reached = f"; listens at {self.reached_at}" if self.reached_at else ""
        return self.ending or f"running for {self.command.elapsed_s:.0f} s{reached}"

    @property
    def fact(self) -> Job:
        """It as a value."""
        return Job(
            id=self.id, command=self.command.order.command, since=self._since, ending=self.ending
        )

    async def stop(self) -> None:
        """End all of it, and wait until it is gone."""
        if self.is_running:
            self._is_stopped = True
            await self.command.stop()


class JobTable:
    """The background commands of the conversation; they end when another takes its place."""

    def __init__(self) -> None:
        self._jobs: dict[str, BackgroundCommand] = {}
        self._last = 0
        self._listener: Callable[[Job], None] | None = None

    @property
    def jobs(self) -> tuple[BackgroundCommand, ...]:
        """All that run, and the newest of those that have ended, oldest first."""
        return tuple(self._jobs.values())

    @property
    def running(self) -> tuple[BackgroundCommand, ...]:
        """Those that run, oldest first."""
        return tuple(job for job in self._jobs.values() if job.is_running)

    @property
    def is_full(self) -> bool:
        """Whether no more may run at a time."""
        return len(self.running) >= MAX_RUNNING

    def listen(self, listener: Callable[[Job], None]) -> None:
        """Have `listener` called with each that begins or ends from now on."""
        self._listener = listener

    def spare(self, ids: Iterable[str]) -> None:
        """Give none of `ids` to another: a session tells of them."""
        numbers = (int(id) for id in ids if id.isdecimal() and len(id) < _MOST_DIGITS)
        self._last = max((self._last, *numbers))

    def add(self, command: ShellCommand) -> BackgroundCommand:
        """Keep `command`, which runs, as a background command."""
        self._last += 1
        self._jobs[str(self._last)] = job = BackgroundCommand(str(self._last), command)
        command.go_unwatched(lambda: self._tell(job))
        ended = [job.id for job in self._jobs.values() if not job.is_running]
        for id in ended[:-_MAX_ENDED]:
            del self._jobs[id]
        self._tell(job)
        return job

    def find(self, id: str) -> BackgroundCommand | None:
        """The one with this id; None where there is none, or it has been forgotten."""
        return self._jobs.get(id)

    def named(self, id: str) -> BackgroundCommand:
        """The one with this id.

        Raises:
            ToolError: There is none; the text names those there are.
        """
        job = self._jobs.get(id)
        if job is None:
            known = ", ".join(self._jobs) or "none"
            raise ToolError(f"There is no background job {id!r}. Jobs: {known}.")
        return job

    async def leave(self) -> tuple[Job, ...]:
        """End all that run, and forget all; gives those that ran, and tells nobody else."""
        running = self.running
        self._jobs.clear()
        await asyncio.gather(*(job.stop() for job in running))
        return tuple(job.fact for job in running)

    def _tell(self, job: BackgroundCommand) -> None:
        if self._listener is not None and self._jobs.get(job.id) is job:
            self._listener(job.fact)
