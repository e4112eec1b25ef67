"""A user-defined command that writes a part of the status line."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject
from agent_tui.safe_text import printable_line
from agent_tui.tools.processes.environment import outside_environ
from agent_tui.tools.processes.keeper import ProcessKeeper

_MOST_BYTES = 16_000
"""Bytes of its output that are read."""


@dataclass(slots=True)
class StatusScript:
    """Runs the command whenever the facts change, within its rate limit.

    Attributes:
        command: For the shell; the settings of a project never name it.
        keeper: Starts it.
        environ: The environment of commands that the user types.
        every_s: Seconds from one run to the next, at least.
        folder: Where it runs: not in the project, whose files could configure what it calls.
        sleep: Waits a number of seconds.
        longest_s: Its time limit in seconds; None for no limit.
    """

    command: str
    keeper: ProcessKeeper
    environ: Mapping[str, str]
    every_s: float
    folder: Path = field(default_factory=Path.home)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    longest_s: float | None = 5.0
    _told: JsonObject | None = field(default=None, init=False)
    _wanted: JsonObject | None = field(default=None, init=False)
    _is_running: bool = field(default=False, init=False)

    def wants(self, facts: JsonObject) -> bool:
        """Store `facts`; returns whether to start `follow`."""
        self._wanted = facts
        return not self._is_running and facts != self._told

    async def follow(self, show: Callable[[str], None], fail: Callable[[str], None]) -> None:
        """Run the command with the present facts until they no longer change.

        Args:
            show: Takes the line.
            fail: Takes why there is none.
        """
        if self._is_running:
            return
        self._is_running = True
        try:
            while (facts := self._wanted) is not None and facts != self._told:
                self._told = facts
                try:
                    show(await self.line(facts))
                except ToolError as error:
                    show("")
                    fail(f"status_command: {error}")
                await self.sleep(self.every_s)
        finally:
            self._is_running = False

    async def line(self, facts: JsonObject) -> str:
        """The first line of what the command prints, safe to show.

        Raises:
            ToolError: It cannot be started, fails, or takes too long.
        """
        output = bytearray()
        argv = ("/bin/sh", "-c", self.command)
        stdin = json.dumps(facts).encode() + b"\n"
        try:
            async with (
                asyncio.timeout(self.longest_s),
                self.keeper.child_group(
                    argv,
                    cwd=self.folder,
                    environ=outside_environ(self.environ),
                    stdin=stdin,
                    keeps_stderr=False,
                ) as child,
                aclosing(child.read_until_exit()) as chunks,
            ):
                async for chunk in chunks:
                    output += chunk[: _MOST_BYTES - len(output)]
                code = child.exit_code
        except TimeoutError as error:
            raise ToolError(f"it took more than {self.longest_s:.0f} seconds.") from error
        if code:
            raise ToolError(f"it ended with exit code {code}.")
        first = output.decode("utf-8", errors="replace").strip().partition("\n")[0]
        return printable_line(first)
