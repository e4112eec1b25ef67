"""Running one shell command: streamed, bounded in time and memory, kept whole on disk."""

import asyncio
import codecs
import os
import secrets
import shutil
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agent_tui.paths import make_private_dir
from agent_tui.secret_text import REMOVED, mask_values
from agent_tui.tools.limits import OutputLimits
from agent_tui.tools.processes.environment import shell_environ
from agent_tui.tools.processes.keeper import READ_BYTES, ProcessKeeper
from agent_tui.tools.shorten import keep_ends, plain_text

MAX_KEPT_BYTES = 50_000_000
"""Output beyond this is not kept on disk."""

_HEAD_BYTES = 100_000
_TAIL_BYTES = 400_000
"""What is held in memory of a long output: enough for the shortened text, cleaned."""

_GATHER_S = 0.03
"""Pause after a read, so that many small writes are shown as one."""

_MAX_SHOWN_CHARS = 8_192
"""Of what came within one pause, only the end is shown live."""


@dataclass(frozen=True, slots=True)
class ShellResult:
    """How a command ended. `text` is plain and shortened; `exit_code` None: it was stopped."""

    text: str
    exit_code: int | None
    is_cut: bool
    full_output_path: Path | None
    elapsed_s: float

    @property
    def ending(self) -> str:
        """One phrase: ``exit code 1``, ``killed by signal 9``, ``stopped after 120 s``."""
        if self.exit_code is None:
            return f"timeout: stopped after {self.elapsed_s:.0f} s"
        if self.exit_code < 0:
            return f"killed by signal {-self.exit_code}"
        return f"exit code {self.exit_code}"


async def run_shell(
    keeper: ProcessKeeper,
    command: str,
    *,
    prefix: Sequence[str] = (),
    cwd: Path,
    environ: Mapping[str, str],
    timeout_s: float,
    output_dir: Path,
    emit: Callable[[str], None],
    limits: OutputLimits,
    secrets: Sequence[str] = (),
) -> ShellResult:
    """Run `command` with bash (sh where there is none), without a terminal and without stdin.

    On timeout, cancellation and at its end, and at ours, everything it started is ended too.

    Args:
        keeper: Starts it.
        command: Shell text, without NULs.
        prefix: Words before the shell's: a program that runs it, and its arguments.
        cwd: Working folder.
        environ: Environment; variables that steer a shell are left out.
        timeout_s: Seconds after which it is stopped.
        output_dir: Where the whole output goes if it is too long for the result.
        emit: Called with output as it comes.
        limits: How long the result's text may be.
        secrets: Values that neither the result nor the file with the whole output may hold.

    Raises:
        ToolError: no shell, or no such folder.
    """
    shell = shutil.which("bash", path=environ.get("PATH")) or "/bin/sh"
    output = _Output(output_dir, secrets)
    started = time.monotonic()
    exit_code: int | None = None
    try:
        async with keeper.child_group(
            [*prefix, shell, "-c", command], cwd=cwd, environ=shell_environ(environ)
        ) as child:
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            try:
                async with asyncio.timeout(timeout_s):
                    async with aclosing(child.read_until_exit()) as chunks:
                        async for chunk in chunks:
                            output.add(chunk)
                            if text := decoder.decode(chunk):
                                emit(text[-_MAX_SHOWN_CHARS:])
                            if len(chunk) < READ_BYTES:
                                await asyncio.sleep(_GATHER_S)
                    exit_code = child.exit_code
            except TimeoutError:
                pass
    except BaseException:
        output.drop_file()
        raise
    output.close()
    text, is_cut = output.shortened(limits)
    path = output.keep_file() if is_cut else output.drop_file()
    return ShellResult(text, exit_code, is_cut, path, time.monotonic() - started)


class _Output:
    """The bytes a command printed: beginning and end in memory, all of it in a private file.

    Where the file cannot be written (disk full), the command goes on and only the ends are kept.
    """

    def __init__(self, folder: Path, secrets: Sequence[str]) -> None:
        self._folder = folder
        self._secrets = tuple(secrets)
        self._hidden = sorted((os.fsencode(value) for value in secrets), key=len, reverse=True)
        self._unwritten = b""
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._may_keep = True
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._total_bytes = 0

    def add(self, chunk: bytes) -> None:
        """Take in what was read."""
        self._total_bytes += len(chunk)
        self._store(chunk)
        room = _HEAD_BYTES - len(self._head)
        self._head += chunk[: max(room, 0)]
        if len(chunk) > room:
            self._add_to_tail(chunk[max(room, 0) :])

    def close(self) -> None:
        """No more is coming."""
        if self._file is not None:
            with suppress(OSError):  # disk full: the file ends a few bytes early
                self._write(b"", is_end=True)
            self._file.close()
            self._file = None

    def shortened(self, limits: OutputLimits) -> tuple[str, bool]:
        """The output as the model gets it, and whether anything is missing from it."""
        held = bytes(self._head) + b"".join(self._tail)
        missing = self._total_bytes - len(held)
        if missing:
            gap = f"\n[... {missing} bytes left out ...]\n".encode()
            held = bytes(self._head) + gap + b"".join(self._tail)
        text = mask_values(plain_text(held.decode("utf-8", "replace")), self._secrets).rstrip("\n")
        kept = keep_ends(text, max_lines=limits.max_lines, max_bytes=limits.max_bytes)
        return kept.text, kept.is_cut or missing > 0

    def keep_file(self) -> Path | None:
        """The file with the whole output, for the person and the model to look at."""
        return self._path

    def drop_file(self) -> None:
        """Delete the file, as the result holds all of it or nobody will ask for it."""
        self.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    def _store(self, chunk: bytes) -> None:
        if not self._may_keep:
            return
        try:
            if self._file is None:
                self._open()
            self._write(chunk)
        except OSError:
            self._may_keep = False
            with suppress(OSError):
                self.drop_file()

    def _write(self, chunk: bytes, *, is_end: bool = False) -> None:
        """Write `chunk` without secrets; what may be the beginning of one waits for the rest."""
        if self._file is None:
            return
        ready = self._unwritten + chunk
        for value in self._hidden:
            ready = ready.replace(value, REMOVED.encode())
        waiting = 0 if is_end or not self._hidden else len(self._hidden[0]) - 1
        written = max(len(ready) - waiting, 0)
        self._unwritten = ready[written:]
        room = MAX_KEPT_BYTES - self._file.tell()
        self._file.write(ready[: min(written, max(room, 0))])
        self._file.flush()

    def _open(self) -> None:
        self._path = make_private_dir(self._folder) / f"bash-{secrets.token_hex(8)}.log"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(descriptor, "wb")

    def _add_to_tail(self, chunk: bytes) -> None:
        self._tail.append(chunk)
        self._tail_bytes += len(chunk)
        while self._tail_bytes - len(self._tail[0]) >= _TAIL_BYTES:
            self._tail_bytes -= len(self._tail.popleft())
