"""Running one shell command: streamed, bounded in time and memory, kept whole on disk."""

import asyncio
import codecs
import os
import secrets
import shutil
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agent_tui.paths import make_private_dir
from agent_tui.tools.limits import OutputLimits
from agent_tui.tools.processes import READ_BYTES, child_group
from agent_tui.tools.shorten import keep_ends
from agent_tui.tools.terminal_text import plain_text

MAX_KEPT_BYTES = 50_000_000
"""Output beyond this is not kept on disk."""

_HEAD_BYTES = 100_000
_TAIL_BYTES = 400_000
"""What is held in memory of a long output: enough for the shortened text, cleaned."""

_GATHER_S = 0.03
"""Pause after a read, so that many small writes are shown as one."""

_MAX_SHOWN_CHARS = 8_192
"""Of what came within one pause, only the end is shown live."""

_STEERING_VARIABLES = ("BASH_ENV", "ENV", "CDPATH", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND")
"""Variables that make a shell run or mean something other than the command says."""

_QUIET_ENVIRON = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
"""Nobody is there to page or to answer."""

_GIT_WITHOUT_MONITOR = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
}
"""Else ``git status`` runs a program that the repository's own configuration names."""


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
    command: str,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    timeout_s: float,
    output_dir: Path,
    emit: Callable[[str], None],
    limits: OutputLimits,
) -> ShellResult:
    """Run `command` with bash (sh where there is none), without a terminal and without stdin.

    On timeout, cancellation and at its end, everything it started in its process group is
    ended too.

    Args:
        command: Shell text, without NULs.
        cwd: Working folder.
        environ: Environment; variables that steer a shell are left out.
        timeout_s: Seconds after which it is stopped.
        output_dir: Where the whole output goes if it is too long for the result.
        emit: Called with output as it comes.
        limits: How long the result's text may be.

    Raises:
        ToolError: no shell, or no such folder.
    """
    shell = shutil.which("bash", path=environ.get("PATH")) or "/bin/sh"
    output = _Output(output_dir)
    started = time.monotonic()
    exit_code: int | None = None
    try:
        async with child_group([shell, "-c", command], cwd=cwd, environ=_clean(environ)) as child:
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
                    exit_code = child.process.returncode
            except TimeoutError:
                pass
    except BaseException:
        output.drop_file()
        raise
    output.close()
    text, is_cut = output.shortened(limits)
    path = output.keep_file() if is_cut else output.drop_file()
    return ShellResult(text, exit_code, is_cut, path, time.monotonic() - started)


def _clean(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _STEERING_VARIABLES and not name.startswith("BASH_FUNC_")
    }
    return {**_GIT_WITHOUT_MONITOR, **kept, **_QUIET_ENVIRON}


class _Output:
    """The bytes a command printed: beginning and end in memory, all of it in a private file.

    Where the file cannot be written (disk full), the command goes on and only the ends are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
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
            self._file.close()
            self._file = None

    def shortened(self, limits: OutputLimits) -> tuple[str, bool]:
        """The output as the model gets it, and whether anything is missing from it."""
        held = bytes(self._head) + b"".join(self._tail)
        missing = self._total_bytes - len(held)
        if missing:
            gap = f"\n[... {missing} bytes left out ...]\n".encode()
            held = bytes(self._head) + gap + b"".join(self._tail)
        text = plain_text(held.decode("utf-8", "replace")).rstrip("\n")
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
            if self._file is not None:
                room = MAX_KEPT_BYTES - self._file.tell()
                self._file.write(chunk[: max(room, 0)])
                self._file.flush()
        except OSError:
            self._may_keep = False
            with suppress(OSError):
                self.drop_file()

    def _open(self) -> None:
        self._path = make_private_dir(self._folder) / f"bash-{secrets.token_hex(8)}.log"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(descriptor, "wb")

    def _add_to_tail(self, chunk: bytes) -> None:
        self._tail.append(chunk)
        self._tail_bytes += len(chunk)
        while self._tail_bytes - len(self._tail[0]) >= _TAIL_BYTES:
            self._tail_bytes -= len(self._tail.popleft())
