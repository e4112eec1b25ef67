"""Running one hook: JSON in, words out, bounded in time and size, and nothing left behind."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.program_lookup import find_program
from agent_tui.tools.processes.environment import outside_environ, shell_environ
from agent_tui.tools.processes.keeper import READ_BYTES, ProcessKeeper, TalkingChild

_MAX_BYTES = 1_000_000
"""Of each output; what is more is read and dropped."""

_DRAIN_S = 0.5
"""How long to read on when the hook has ended but something it started holds its output."""


@dataclass(frozen=True, slots=True)
class HookRun:
    """How a hook ended.

    `exit_code` is negative for a signal. `problem` says why there is none; empty where it came
    to its end.
    """

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    problem: str = ""


async def run_command(
    keeper: ProcessKeeper,
    command: str,
    given: str,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    timeout_s: float,
) -> HookRun:
    """Run `command` with bash (sh where there is none); never raises for what it does.

    All it started is ended with it, also when this is cancelled.

    Args:
        keeper: Starts it.
        command: Shell text.
        given: What it reads.
        cwd: Its working folder.
        environ: Its environment; variables that steer a shell are left out.
        timeout_s: When it is stopped.
    """
    shell = find_program("bash", environ.get("PATH")) or "/bin/sh"
    try:
        async with keeper.talking_child(
            [shell, "-c", command], cwd=cwd, environ=shell_environ(outside_environ(environ))
        ) as child:
            child.stdin.write(given.encode("utf-8", "replace"))
            child.stdin.close()
            return await _outcome(child, timeout_s)
    except ToolError as error:
        return HookRun(problem=str(error))
    except ValueError as error:  # a NUL in a variable
        return HookRun(problem=f"cannot be started: {error}")


async def _outcome(child: TalkingChild, timeout_s: float) -> HookRun:
    outputs = (bytearray(), bytearray())
    streams = (child.stdout, child.stderr)
    reads = [
        asyncio.create_task(_read(stream, output))
        for stream, output in zip(streams, outputs, strict=True)
    ]
    try:
        await asyncio.wait((child.ending,), timeout=timeout_s)
        if not child.ending.done():
            return HookRun(problem=f"timed out after {timeout_s:g} s")
        await asyncio.wait(reads, timeout=_DRAIN_S)
    finally:
        for read in reads:
            read.cancel()
    stdout, stderr = (bytes(output).decode("utf-8", "replace") for output in outputs)
    return HookRun(child.ending.result(), stdout, stderr)


async def _read(stream: asyncio.StreamReader, output: bytearray) -> None:
    while chunk := await stream.read(READ_BYTES):
        output += chunk[: _MAX_BYTES - len(output)]
