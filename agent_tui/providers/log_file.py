"""The program's log: private, bounded, without keys. Several processes may write to it."""

import asyncio
import contextlib
import os
import traceback
from asyncio import StreamReader
from collections.abc import Callable, Iterable
from pathlib import Path

from agent_tui.paths import make_private_dir
from agent_tui.safe_text import strip_control_characters
from agent_tui.secret_text import mask_secrets

MAX_LOG_BYTES = 1_000_000
"""A larger log is renamed to ``agent-tui.log.1``, replacing the previous one."""

MAX_ENTRY_BYTES = 64 * 1024
"""Of a longer entry only the end is written: a traceback's last lines say most."""

_FINISH_S = 1.0

_FLOOD_PAUSE_S = 0.05
"""Bytes taken at once: a process that keeps complaining must not keep the program busy."""


def append_to_log(log_path: Path, text: str, secrets: Iterable[str] = ()) -> None:
    """Append `text` on separate lines, without `secrets` and what looks like one.

    Raises:
        OSError: The log cannot be written.
    """
    harmless = mask_secrets(strip_control_characters(text), secrets).strip("\n")
    entry = f"{harmless}\n".encode("utf-8", "replace")[-MAX_ENTRY_BYTES:]
    make_private_dir(log_path.parent)
    descriptor = _open(log_path)
    try:
        if os.fstat(descriptor).st_size + len(entry) > MAX_LOG_BYTES:
            log_path.replace(log_path.with_name(f"{log_path.name}.1"))
            os.close(descriptor)
            descriptor = _open(log_path)
        os.write(descriptor, entry)
    finally:
        os.close(descriptor)


def fault_reporter(log_path: Path, secrets: Iterable[str] = ()) -> Callable[[BaseException], None]:
    """A function that logs where a fault of the program happened, and its kind.

    Not its message, which can repeat what a model wrote. A log that cannot be written stops
    nothing.
    """

    def report(fault: BaseException) -> None:
        frames = "".join(traceback.format_tb(fault.__traceback__))
        with contextlib.suppress(OSError):
            append_to_log(log_path, f"{frames}{type(fault).__name__}", secrets)

    return report


class ProcessLog:
    """Writes a child process's stderr to the log; keeps the end of it in memory.

    Needs a running event loop.
    """

    def __init__(self, stderr: StreamReader, log_path: Path, secrets: Iterable[str]) -> None:
        self._log_path = log_path
        self._secrets = tuple(secrets)
        self.text = ""
        """The newest output of the process, at most `MAX_ENTRY_BYTES` characters."""
        self._taking = asyncio.create_task(self._take_all(stderr))

    @property
    def last_line(self) -> str:
        """The last line of the process's output, safe to show and without secrets."""
        line = next(filter(str.strip, reversed(self.text.splitlines())), "")
        return mask_secrets(strip_control_characters(line), self._secrets).strip()

    async def finish(self) -> None:
        """Read the remaining output of a process that has ended.

        A child of it may hold its stderr open; that is not waited for.
        """
        await asyncio.wait({self._taking}, timeout=_FINISH_S)
        self._taking.cancel()
        await asyncio.wait({self._taking})

    async def _take_all(self, stderr: StreamReader) -> None:
        unfinished = b""
        while chunk := await stderr.read(MAX_ENTRY_BYTES):
            lines, newline, unfinished = (unfinished + chunk).rpartition(b"\n")
            self._write(lines + newline)
            if len(chunk) == MAX_ENTRY_BYTES:
                await asyncio.sleep(_FLOOD_PAUSE_S)
            if len(unfinished) > MAX_ENTRY_BYTES:
                self._write(unfinished)
                unfinished = b""
        self._write(unfinished)

    def _write(self, said: bytes) -> None:
        if not said:
            return
        text = said.decode("utf-8", "replace")
        self.text = (self.text + text)[-MAX_ENTRY_BYTES:]
        with contextlib.suppress(OSError):  # a log that cannot be written stops nothing
            append_to_log(self._log_path, text, self._secrets)


def _open(log_path: Path) -> int:
    return os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
