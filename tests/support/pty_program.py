"""A program in a pseudo-terminal: what it writes, with times, and keys sent to it."""

import codecs
import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.patience import PATIENCE_S

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]", re.DOTALL
)


class PtyProgram:
    """Runs `argv` in a pseudo-terminal of its own session until the block is left.

    A thread reads all output, so the program never waits for us. `text` is the output without
    escape sequences: good for finding words, not for layout.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        columns: int = 100,
        rows: int = 30,
    ) -> None:
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~termios.ECHO  # only what the program itself draws counts as an echo
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self._pieces: list[tuple[float, str]] = []
        self._news = threading.Condition(threading.RLock())
        self._ended = False
        self.started_at = time.perf_counter()
        self.process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env={"TERM": "xterm-256color", **(environ if environ is not None else os.environ)},
            start_new_session=True,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(timeout=5)
        os.close(self._master)

    @property
    def output(self) -> str:
        """Everything written so far."""
        with self._news:
            return "".join(piece for _, piece in self._pieces)

    @property
    def text(self) -> str:
        """`output` without escape sequences."""
        return _ESCAPES.sub("", self.output)

    def send(self, keys: str) -> None:
        """Type `keys`."""
        os.write(self._master, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal; the program is told."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for(self, word: str, timeout_s: float = PATIENCE_S, *, since: int = 0) -> float:
        """Wait until `word` is in `text` (from character `since` on of it); the time it took.

        Returns:
            `time.perf_counter` of the piece of output that completed it.

        Raises:
            TimeoutError: it did not come, or the program ended without it.
        """
        deadline = time.perf_counter() + timeout_s
        with self._news:
            while True:
                if word in _ESCAPES.sub("", "".join(p for _, p in self._pieces))[since:]:
                    return self._pieces[-1][0]
                left = deadline - time.perf_counter()
                if left <= 0 or self._ended:
                    raise TimeoutError(f"{word!r} did not appear; the end was {self.text[-600:]!r}")
                self._news.wait(min(left, 0.5))

    @property
    def piece_count(self) -> int:
        """How many pieces of output came so far."""
        with self._news:
            return len(self._pieces)

    def time_of(self, letter: str, timeout_s: float = PATIENCE_S, *, since_piece: int = 0) -> float:
        """When the first piece of output with `letter` came, as of `time.perf_counter`.

        Each piece is looked at once, so that waiting takes no time from what is measured.

        Raises:
            TimeoutError: it did not come.
        """
        deadline = time.perf_counter() + timeout_s
        with self._news:
            while True:
                for at, piece in self._pieces[since_piece:]:
                    if letter in piece:
                        return at
                since_piece = len(self._pieces)
                if self._ended or time.perf_counter() > deadline:
                    raise TimeoutError(f"{letter!r} did not appear within {timeout_s} s")
                self._news.wait(0.5)

    def wait_until_end(self, timeout_s: float = PATIENCE_S) -> int:
        """Wait for the program to end by itself; its exit code."""
        code = self.process.wait(timeout=timeout_s)
        self._reader.join(timeout=5)
        return code

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            ready, _, _ = select.select([self._master], [], [], 0.5)
            if not ready:
                if self.process.poll() is not None:
                    break
                continue
            try:
                data = os.read(self._master, 65_536)
            except OSError:
                break
            if not data:
                break
            with self._news:
                self._pieces.append((time.perf_counter(), decoder.decode(data)))
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()
