"""The screen on a pseudo-terminal, killed by its own hand at a moment it is told.

Run as ``python -m tests.support.killed_screen``. It reads orders (one JSON object a line) and
carries each out in a fork of itself, which need not load the program again. The fork notes in
``told`` in the order's folder what it has written, as `killed_program` does. When it is dead and
nothing it started runs any more, the program prints ``{"moments": n}``, how far it came.
"""

import ctypes
import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import agent_tui.cli.compose
import agent_tui.cli.screen_options
import agent_tui.ui.app
import agent_tui.ui.assembly  # noqa: F401 - loaded once, for all forks
from agent_tui.__main__ import main as agent_tui_main
from agent_tui.features.tour import replies as demo
from agent_tui.features.tour.scripted import ScriptedProvider
from agent_tui.providers.base import Chunk, ModelRequest
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.log import SessionLog
from agent_tui.tools.processes.output import CommandOutput
from tests.support.killed_program import fingerprints

_PR_SET_CHILD_SUBREAPER = 36
_LOOK_EVERY_S = 0.05
_LOOKS_AT_REST = 40
_LOOKS_AT_THE_END = 160
"""At the end of a whole scene: one that ends too early would leave moments untried."""


@dataclass(frozen=True, slots=True)
class ScreenOrder:
    """`moment`: kill yourself at the n-th, in the middle of it where it is a write; else when
    nothing happens any more."""

    folder: str
    terminal: str
    argv: list[str]
    seed: int
    moment: int


def ask(order: ScreenOrder) -> bytes:
    return json.dumps(asdict(order)).encode() + b"\n"


def main() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    demo.DELAY_S_PER_CHUNK = 0.0
    for line in sys.stdin:
        order = ScreenOrder(**json.loads(line))
        if os.fork() == 0:
            _show(order)
        try:
            while True:  # the screen, and all it left, which is handed on to us
                os.waitpid(-1, 0)
        except ChildProcessError:
            pass
        moments = Path(order.folder, "moments")
        print(
            json.dumps({"moments": moments.stat().st_size if moments.exists() else 0}), flush=True
        )


def _show(order: ScreenOrder) -> None:
    os.setsid()
    terminal = os.open(order.terminal, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(terminal, descriptor)
    os.chdir(Path(order.folder, "work"))
    os.environ |= {"AGENT_TUI_HOME": order.folder, "TERM": "xterm-256color"}
    _Moments(order).watch()
    sys.argv = ["agent-tui", *order.argv]
    os._exit(agent_tui_main())


class _Moments:
    """Counts what happens to files and in the conversation, and kills the program at one."""

    def __init__(self, order: ScreenOrder) -> None:
        self._wanted = order.moment
        self._chance = random.Random(order.seed)
        self._lock = threading.Lock()
        self._write = os.write
        self._count = 0
        append = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._told = os.open(Path(order.folder, "told"), append)
        self._counted = os.open(Path(order.folder, "moments"), append)

    def watch(self) -> None:
        os.write = self._write_or_die
        for name in ("replace", "link", "fsync", "unlink"):
            setattr(os, name, self._noted(getattr(os, name)))
        CommandOutput.add = self._noted(CommandOutput.add)
        ScriptedProvider.stream = self._streamed(ScriptedProvider.stream)
        SessionLog.append_many = self._acknowledged(SessionLog.append_many)
        execute = self._noted(sqlite3.Connection.execute)
        noted = type("Noted", (sqlite3.Connection,), {"execute": execute})
        sqlite3.connect = partial(sqlite3.connect, factory=noted)
        threading.Thread(target=self._die_at_rest, daemon=True).start()

    def _come(self) -> bool:
        """Whether this moment is the one."""
        with self._lock:
            self._count += 1
            self._write(self._counted, b".")
            return self._count == self._wanted

    def _write_or_die(self, descriptor: int, data: bytes) -> int:
        if self._come():
            self._write(descriptor, data[: self._chance.randint(0, len(data))])
            _kill_self()
        return self._write(descriptor, data)

    def _noted(self, function: Any) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            if self._come():
                _kill_self()
            return function(*args, **kwargs)

        return noted

    def _streamed(self, stream: Any) -> Any:
        async def streamed(
            provider: ScriptedProvider, request: ModelRequest
        ) -> AsyncGenerator[Chunk, None]:
            async for chunk in stream(provider, request):
                if self._come():
                    _kill_self()
                yield chunk

        return streamed

    def _acknowledged(self, append_many: Any) -> Any:
        def acknowledged(log: SessionLog, entries: Sequence[Entry]) -> tuple[Entry, ...]:
            placed = append_many(log, entries)
            if log.path is not None and placed:
                fact = {"file": log.path.name, "entries": fingerprints(placed)}
                self._write(self._told, json.dumps(fact).encode() + b"\n")
                if self._come():
                    _kill_self()
            return placed

        return acknowledged

    def _die_at_rest(self) -> None:
        last, looks = 0, 0
        enough = _LOOKS_AT_REST if self._wanted else _LOOKS_AT_THE_END
        while looks < enough:
            time.sleep(_LOOK_EVERY_S)
            looks = looks + 1 if self._count and self._count == last and not _is_busy() else 0
            last = self._count
        _kill_self()


def _is_busy() -> bool:
    """Whether a thread here, or of a process below, runs, wants to run or reads a disk.

    The clock alone does not tell a program at rest from one that gets no turn.
    """
    here, pids = threading.get_native_id(), [os.getpid()]
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*"):
            with suppress(OSError):  # it ended meanwhile
                pids += map(int, (task / "children").read_text().split())
                state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                if state in "RD" and int(task.name) != here:
                    return True
    return False


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
