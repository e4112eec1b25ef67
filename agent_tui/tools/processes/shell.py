"""Runs shell commands: output is streamed, limited in memory, complete on disk."""

import asyncio
import codecs
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from agent_tui.safe_paths import find_program
from agent_tui.tools.processes.environment import shell_environ
from agent_tui.tools.processes.keeper import READ_BYTES, Child, ProcessKeeper
from agent_tui.tools.processes.output import MAX_KEPT_BYTES, CommandOutput, EmitOutput
from agent_tui.tools.shorten import OutputLimits

_GATHER_S = 0.03
"""Seconds to pause after a read, so that many small writes are shown together."""

_MAX_SHOWN_CHARS = 8_192
"""Bytes; of what came within one pause, only the end is shown live."""

_LEFTOVERS_S = 1.0
"""Seconds that what a command leaves running may take to end: update checks end, and so do servers
whose port is in use."""


INTERRUPTED = "interrupted after"
"""How the ending of an interrupted call begins, for `extract_printed`."""

IN_BACKGROUND = "runs in the background"
"""How the ending of a call begins whose command became a job, for `extract_printed`."""

_PARTIAL = "by the user; it may have taken partial effect"
_NO_OUTPUT = "(no output)"
_WHOLE_OUTPUT = "[whole output"


def ending_of(exit_code: int, excess: int) -> str:
    """One phrase: ``exit code 1``, ``killed by signal 9``, ``killed: it had ...``.

    Args:
        exit_code: Negative for a signal.
        excess: `Child.excess`.
    """
    if excess:
        return f"killed: it had {excess:,} processes, more than max_processes allows"
    return f"killed by signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"


def interruption_of(elapsed_s: float) -> tuple[str, str]:
    """How a call ended that the user interrupted after `elapsed_s` seconds: shortly, and in full.

    The full phrase begins with the short one.
    """
    ending = f"{INTERRUPTED} {elapsed_s:.0f} s"
    return ending, f"{ending} {_PARTIAL}"


@dataclass(frozen=True, slots=True)
class ShellResult:
    """How a command ended, or its current state.

    `text` is plain and shortened: what was printed since the last look, `printed_lines` lines.
    `exit_code` is None if it still runs or was stopped. `excess` is `Child.excess`. `left_out` says
    how to get the output that is not in `text`, and what cut it; empty if nothing did.
    """

    text: str
    exit_code: int | None
    is_cut: bool
    full_output_path: Path | None
    elapsed_s: float
    excess: int = 0
    printed_lines: int = 0
    left_out: str = ""

    def for_model(self, ending: str, hints: Iterable[str] = ()) -> str:
        """The output, where the whole output is, and further hints in brackets."""
        lines = [self.text or _NO_OUTPUT]
        if path := self.full_output_path:
            lines.append(f"{_WHOLE_OUTPUT}: {path}{self.left_out}]")
        lines += [f"[{hint}]" for hint in hints]
        return "\n".join([*lines, f"[{ending}]"])

    @property
    def ending(self) -> str:
        """One phrase: ``exit code 1``, ``killed by signal 9``, ``stopped after 120 s``."""
        if self.exit_code is None:
            return f"timeout: stopped after {self.elapsed_s:.0f} s"
        return ending_of(self.exit_code, self.excess)


def extract_printed(for_model: str, ending: str) -> str:
    """A command's output, extracted from the result of `ShellResult.for_model`.

    Hints stay, and so does text that others added after the result.

    Args:
        for_model: The text of the result.
        ending: The start of the ending in that result.
    """
    printed, mark, rest = f"\n{for_model}".rpartition(f"\n[{ending}")
    if not mark:
        return for_model.rstrip("\n")
    *most, before_last, last = f"\n{printed}".rsplit("\n", 2)
    kept = [line for line in (before_last, last) if not line.startswith(_WHOLE_OUTPUT)]
    text = "\n".join([*most, *kept, rest.partition("\n")[2]]).strip("\n")
    return text.removeprefix(_NO_OUTPUT).lstrip("\n")


@dataclass(frozen=True, slots=True)
class ShellOrder:
    """What to run, and how.

    Args:
        command: Shell text, without NULs.
        cwd: Working folder.
        environ: Environment; variables that change a shell's behaviour are left out.
        output_dir: Where the whole output goes.
        secrets: Values that must not be in any returned or stored output.
    """

    command: str
    cwd: Path
    environ: Mapping[str, str]
    output_dir: Path
    secrets: Sequence[str] = ()


class ShellCommand:
    """A command that runs with bash (sh if there is none), without a terminal or stdin.

    It runs until everything it started has ended, or it is stopped; it ends with the program.

    Args:
        keeper: Starts it.
        order: What is run. It starts at the next await.
        emit: Called with output as it arrives, until `go_unwatched`.
    """

    def __init__(self, keeper: ProcessKeeper, order: ShellOrder, emit: EmitOutput) -> None:
        self.order = order
        self.output = CommandOutput(order.output_dir, order.secrets)
        self.exit_code: int | None = None
        self.excess = 0
        self._emit: EmitOutput | None = emit
        self._began = time.monotonic()
        self._ended: float | None = None
        self._left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(keeper))

    @property
    def is_running(self) -> bool:
        """Whether any of its processes runs."""
        return not self._task.done()

    @property
    def elapsed_s(self) -> float:
        """How long it has been running, or ran, in seconds."""
        return (self._ended or time.monotonic()) - self._began

    @property
    def is_moved(self) -> bool:
        """Whether the user moved it to the background."""
        return self._moved.done()

    def move(self) -> None:
        """Let nobody wait for it any longer: it is to go on in the background."""
        if not self._moved.done():
            self._moved.set_result(None)

    def call_when_over(self, on_end: Callable[[], None]) -> None:
        """Call `on_end` when all of it has ended."""
        self._task.add_done_callback(lambda _task: on_end())

    def go_unwatched(self, on_end: Callable[[], None]) -> None:
        """Stop emitting output, and call `on_end` when all of it has ended.

        From now on output is read slowly, so that endless output does not keep the program busy.
        """
        self._emit = None
        self.call_when_over(on_end)

    async def wait(self, timeout_s: float) -> None:
        """Wait until all of it has ended, at most this many seconds.

        Raises:
            ToolError: It could not be started: no shell, or no such folder.
        """
        await asyncio.wait((self._task,), timeout=timeout_s)
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def wait_for_shell(self, timeout_s: float) -> bool:
        """As `wait`, but only until the shell ends, plus a moment for what it left running.

        Returns:
            Whether the shell has ended, or the command was moved to the background.
        """
        ends = (self._task, self._left, self._moved)
        done, _ = await asyncio.wait(ends, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        await self.wait(0)
        return bool(done)

    async def stop(self) -> None:
        """End all of it, and wait until it is gone."""
        self._task.cancel()
        await asyncio.wait((self._task,))

    def result(self, limits: OutputLimits) -> ShellResult:
        """What it printed since the last call, and its state."""
        printed_lines = self.output.unread_lines
        kept = self.output.take(limits)
        return ShellResult(
            kept.text,
            self.exit_code,
            kept.is_cut,
            self.output.path if kept.is_cut else None,
            self.elapsed_s,
            self.excess,
            printed_lines,
            self._describe_rest(kept.left_out, limits),
        )

    def _describe_rest(self, lines: tuple[int, int], limits: OutputLimits) -> str:
        first, last = lines
        most_mb = MAX_KEPT_BYTES // 1_000_000
        notes = [] if self.output.is_kept_whole else [f"only its first {most_mb} MB"]
        if last:
            notes.append(f"read it with offset={first} limit={last - first + 1} for the rest")
            notes.append(f"cut at {limits.cap}")
        return "".join(f"; {note}" for note in notes)

    async def _run(self, keeper: ProcessKeeper) -> None:
        order = self.order
        shell = find_program("bash", order.environ.get("PATH")) or "/bin/sh"
        try:
            async with keeper.child_group(
                [shell, "-c", order.command],
                cwd=order.cwd,
                environ=shell_environ(order.environ),
            ) as child:
                await self._read(child)
                self.excess = child.excess
        finally:
            self._ended = time.monotonic()
            self.output.close()

    async def _read(self, child: Child) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for chunks in (child.read_until_exit(), child.read_until_gone()):
            async with aclosing(chunks):
                async for chunk in chunks:
                    printed = self.output.add(chunk)
                    if self._emit is not None and (text := decoder.decode(printed)):
                        _emit_end(text, self._emit)
                    if self._emit is None or len(chunk) < READ_BYTES:
                        await child.pause(_GATHER_S)
            if self.exit_code is None:
                self.exit_code = child.exit_code
                asyncio.get_running_loop().call_later(_LEFTOVERS_S, self._say_left)

    def _say_left(self) -> None:
        if not self._left.done():
            self._left.set_result(None)


def _emit_end(text: str, emit: EmitOutput) -> None:
    shown = text[-_MAX_SHOWN_CHARS:]
    if skipped_lines := text.count("\n", 0, len(text) - len(shown)):
        emit(shown, skipped_lines)
    else:
        emit(shown)
