"""Child processes in groups of their own, which never outlive the call that started them."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError

_TERM_GRACE_S = 0.5
"""How long a group may take to end after SIGTERM before it gets SIGKILL."""

_DRAIN_S = 0.5
"""How long to read on when the child ended but something it started holds the pipe."""

READ_BYTES = 65_536
"""One read; also the usual capacity of a pipe."""


@dataclass(frozen=True, slots=True)
class Child:
    """A running child and the merged stdout and stderr of its whole group."""

    process: asyncio.subprocess.Process
    output: asyncio.StreamReader

    async def read_until_exit(self) -> AsyncGenerator[bytes, None]:
        """Output as it comes, until the pipe closes or the child has ended and it is quiet.

        A background process that keeps the pipe open does not hold this up.
        """
        exited = asyncio.ensure_future(self.process.wait())
        try:
            while True:
                read = asyncio.ensure_future(self.output.read(READ_BYTES))
                try:
                    await asyncio.wait((read, exited), return_when=asyncio.FIRST_COMPLETED)
                    if not read.done():
                        await asyncio.wait((read,), timeout=_DRAIN_S)
                    if not read.done():
                        return
                    chunk = read.result()
                finally:
                    read.cancel()
                if not chunk:
                    await exited
                    return
                yield chunk
        finally:
            exited.cancel()


@asynccontextmanager
async def child_group(
    argv: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    stdin: bytes | None = None,
    keeps_stderr: bool = True,
) -> AsyncGenerator[Child, None]:
    """Start `argv` as the leader of a new session; on the way out the whole group is ended.

    Args:
        argv: Program and arguments; no shell looks at them.
        cwd: Working folder.
        environ: The whole environment.
        stdin: What it may read; None is ``/dev/null``.
        keeps_stderr: Whether stderr is part of the output; else it is thrown away.

    Raises:
        ToolError: the program or the folder is not there.
    """
    reading, writing = os.pipe()
    output = asyncio.StreamReader(limit=READ_BYTES)
    try:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(output), os.fdopen(reading, "rb", 0)
        )
    except BaseException:
        os.close(writing)
        raise
    try:
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=cwd,
                env=dict(environ),
                stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
                stdout=writing,
                stderr=writing if keeps_stderr else asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ToolError(f"{argv[0]} cannot be started in {cwd}: {error}") from error
        finally:
            os.close(writing)
        try:
            if stdin is not None and process.stdin is not None:
                process.stdin.write(stdin)
                process.stdin.close()
            yield Child(process, output)
        finally:
            transport.close()
            await end_group(process)
    finally:
        transport.close()


async def end_group(process: asyncio.subprocess.Process) -> None:
    """End the process and everything left in its group: SIGTERM, then SIGKILL."""
    try:
        if process.returncode is None:
            _signal_group(process.pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _TERM_GRACE_S)
    finally:
        _signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def _signal_group(leader_pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader_pid, number)
