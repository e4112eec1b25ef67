"""One process that serves a local model: starts it, waits for it, and ends it completely."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import TypeAdapter

from agent_tui.providers.keys import secret_values
from agent_tui.providers.local.server_messages import LoadAnswer, LoadOrder, NotServed, ServedLocal
from agent_tui.providers.log_file import ProcessLog

SERVER_COMMAND: Final = (sys.executable, "-P", "-m", "agent_tui.providers.local.server")

_EXIT_GRACE_S = 10.0
"""Seconds for a process that has refused a model, and is writing its log."""

_ANSWER: TypeAdapter[LoadAnswer] = TypeAdapter(LoadAnswer)
_ERROR_LINE = re.compile(r"^[\d.]+ E (.+)", re.M)
_CAUSE = re.compile(r"error loading model: (.+)|(GGML_ASSERT.+)|(failed to allocate .+)")
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


@dataclass(frozen=True, slots=True)
class LoadFailure:
    """Why no server started.

    Args:
        reason: ``missing``: xllamacpp is not installed. ``refused``: llama.cpp does not accept the
            model. ``broke``: the process crashed on it. ``killed``: something else ended it.
        detail: What the log or the process said about it.
    """

    reason: Literal["missing", "refused", "broke", "killed"]
    detail: str


class LoadError(Exception):
    """The model was not loaded."""

    def __init__(self, failure: LoadFailure) -> None:
        super().__init__(f"{failure.reason}: {failure.detail}")
        self.failure = failure


class LocalServerProcess:
    """A server that is ready. Use `launch` to create one."""

    def __init__(self, process: Process, served: ServedLocal, log: ProcessLog) -> None:
        self._process = process
        self._log = log
        self.served = served

    @classmethod
    async def launch(
        cls,
        command: Sequence[str],
        order: LoadOrder,
        log_path: Path,
        environ: Mapping[str, str],
    ) -> Self:
        """Start a process with `command` and wait until the model is loaded.

        It gets its own session, so that Ctrl+C in the terminal does not reach it, and its stderr
        goes to the log `log_path`. The key goes through its stdin; nothing in `environ` that looks
        like a key is passed on. Cancelling ends the process.

        Raises:
            LoadError: The model cannot be loaded, or the process ended before it was.
            OSError: The process cannot be started.
        """
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd="/",
            env=_child_environ(environ, order["key"]),
            start_new_session=True,
        )
        assert process.stderr is not None
        log = ProcessLog(process.stderr, log_path, (order["key"], *secret_values(environ)))
        try:
            answer = await _answer(process, order)
            if isinstance(answer, ServedLocal):
                return cls(process, answer, log)
            assert process.stdin is not None
            process.stdin.close()  # this ends it if it waits for more
            await _ends_within(process, _EXIT_GRACE_S)
        except asyncio.CancelledError:
            await _end(process)
            await log.finish()
            raise
        status = await _end(process)
        await log.finish()
        raise LoadError(_failure(answer, status, log.text))

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether its end has not been noticed yet."""
        return self._process.returncode is None

    async def ends_within(self, limit_s: float) -> bool:
        """Whether the process ends within `limit_s`: its broken connections show up earlier."""
        return await _ends_within(self._process, limit_s)

    async def aclose(self) -> None:
        """Kill it, as there is nothing to save; returns when it is gone."""
        await _end(self._process)
        await self._log.finish()


async def _answer(process: Process, order: LoadOrder) -> LoadAnswer | None:
    """The process's answer; None if it ends without one."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order).encode("ascii") + b"\n")
    if not (line := await process.stdout.readline()):
        return None
    try:
        return _ANSWER.validate_json(line)
    except ValueError:
        return NotServed("refused", "its server sent an invalid answer")


async def _ends_within(process: Process, limit_s: float) -> bool:
    try:
        await asyncio.wait_for(process.wait(), limit_s)
    except TimeoutError:
        return False
    return True


async def _end(process: Process) -> int:
    """Kill the process group if it still runs; returns its exit status."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):  # it ended, but we do not know yet
            os.killpg(process.pid, signal.SIGKILL)
    return await process.wait()


def _failure(answer: NotServed | None, status: int, log: str) -> LoadFailure:
    """What went wrong, in llama.cpp's words if it gave any."""
    detail = _cause(log)
    match answer:
        case NotServed("missing", missing):
            return LoadFailure("missing", missing)
        case NotServed("refused", refused):
            return LoadFailure("refused", detail or refused)
        case None if -status in _FROM_OUTSIDE:
            return LoadFailure("killed", f"signal {-status}")
        case _:
            how = f"signal {-status}" if status < 0 else f"status {status}"
            return LoadFailure("broke", detail or how)


def _cause(log: str) -> str:
    """The line of a log that says most about a failure; empty if none does."""
    if found := _CAUSE.search(log):
        return found[0].removeprefix("error loading model: ")
    errors = _ERROR_LINE.findall(log)
    return " ".join(errors[-1].split()) if errors else ""


def _child_environ(environ: Mapping[str, str], key: str) -> dict[str, str]:
    """`environ` without anything that is or looks like a key.

    A crash of llama.cpp must not start a debugger, which would put the prompt into the log.
    """
    hidden = {key, *secret_values(environ)}
    kept = {name: value for name, value in environ.items() if value not in hidden}
    return kept | {"GGML_NO_BACKTRACE": "1"}
