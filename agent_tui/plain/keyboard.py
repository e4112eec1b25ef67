"""Lines from the person, and Control C: ordinary terminal input, with line editing if possible."""

import os
import select
import signal
import termios
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Protocol, TextIO

from agent_tui.safe_text import safe_text

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Ctrl+C ends the reading of a line with `KeyboardInterrupt`; at work it only calls `stop`.

    A program that is told to end does so with `SystemExit`, so that what is open is closed.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._is_reading = False

    @contextmanager
    def caught(self) -> Generator[None]:
        """In here signals are handled this way; where one is ignored, it stays so."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
        caught = [number for number, handler in before.items() if handler != signal.SIG_IGN]
        for number in caught:
            signal.signal(number, self._handle)
        try:
            yield
        finally:
            for number in caught:
                signal.signal(number, before[number])

    @contextmanager
    def reading(self) -> Generator[None]:
        """In here Ctrl+C is a `KeyboardInterrupt`."""
        self._is_reading = True
        try:
            yield
        finally:
            self._is_reading = False

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT:
            raise SystemExit(128 + number)
        if self._is_reading:
            raise KeyboardInterrupt
        self._stop()


BLOCK = '"""'
_MORE = "... "
"""The prompt for the further lines of a message."""

_DUMB = ("", "dumb", "emacs", "unknown")
_MOST_BYTES_AT_ONCE = 65_536
_MOST_BYTES = 1_000_000
_PASTE_GAP_S = 0.05
"""No pause in a paste is as long."""


class LineSource(Protocol):
    """Where lines come from."""

    def read(self, prompt: str) -> str:
        """The line typed after `prompt`, without its newline.

        Raises:
            EOFError: There are no more.
            KeyboardInterrupt: Ctrl+C was pressed.
        """
        ...

    def remember(self, line: str) -> None:
        """Let the person bring `line` back with a key, if that is possible."""
        ...


class TypedInput(Protocol):
    """What was typed and is not read yet."""

    def take(self) -> str:
        """Take its whole lines away, joined by newlines; empty if there are none."""
        ...

    def drop_rest(self) -> None:
        """Forget the line that is being typed."""
        ...


@dataclass(frozen=True, slots=True)
class TypedMessage:
    """What the person sends. `is_pasted`: lines that came at once, so none is a command."""

    text: str
    is_pasted: bool = False


class Keyboard:
    """Asks for lines.

    Args:
        source: Gives one after the other.
        reading: Makes Ctrl+C end the reading.
        unread: What was typed before it was asked for.
    """

    def __init__(
        self,
        source: LineSource,
        reading: Callable[[], AbstractContextManager[None]],
        unread: TypedInput,
    ) -> None:
        self._source = source
        self._reading = reading
        self._unread = unread

    def line(self, prompt: str) -> str:
        """One line. Raises as `LineSource.read`."""
        with self._reading():
            return self._source.read(safe_text(prompt, keep_newlines=False))

    def drop_typed(self) -> str:
        """Forget what was typed up to now; returns the lines of it."""
        lines = self._unread.take()
        self._unread.drop_rest()
        return lines

    def message(self, prompt: str) -> TypedMessage:
        r"""A message: a line, with ``\`` at its end also the next; or what `BLOCK` encloses.

        Lines that are there at once with the first were pasted: they are one message.
        """
        first = self.line(prompt)
        if first.strip() == BLOCK:
            return TypedMessage(self._block())
        if not first.endswith("\\"):
            more = self._unread.take()
            if first.strip() and not more:
                self._source.remember(first)
            return TypedMessage("\n".join(filter(None, (first, more))).strip(), bool(more))
        lines = [first]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(self.line(_MORE))
        return TypedMessage("\n".join(lines).strip())

    def _block(self) -> str:
        lines: list[str] = []
        while (line := self.line(_MORE)).strip() != BLOCK:
            lines.append(line)
        return "\n".join(lines)


def terminal_lines(
    lines_before: Iterable[str], environ: Mapping[str, str], stdin: TextIO, stdout: TextIO
) -> LineSource:
    """Lines from the terminal: with readline, where it can draw, else as the terminal gives them.

    Args:
        lines_before: What the up key brings back, oldest first.
        environ: ``TERM`` says whether the terminal can draw; one that cannot may edit by itself.
        stdin: The terminal.
        stdout: Where prompts go.
    """
    if stdout.isatty() and environ.get("TERM", "") not in _DUMB:
        try:
            import readline
        except ImportError:
            pass
        else:
            return _EditedLines(readline, lines_before)
    return _PlainLines(stdin, stdout)


class _PlainLines:
    """What the terminal gives."""

    def __init__(self, stdin: TextIO, stdout: TextIO) -> None:
        self._stdin = stdin
        self._stdout = stdout

    def read(self, prompt: str) -> str:
        self._stdout.write(prompt)
        self._stdout.flush()
        line = self._stdin.readline()
        if not line:
            raise EOFError
        return line.removesuffix("\n")

    def remember(self, line: str) -> None:
        pass


class _Editing(Protocol):
    """What is used of the module `readline`."""

    def parse_and_bind(self, string: str, /) -> None: ...
    def add_history(self, string: str, /) -> None: ...
    def set_auto_history(self, enabled: bool, /) -> None: ...


class _EditedLines:
    """Lines the person can edit, and bring back those that were messages."""

    def __init__(self, readline: _Editing, lines_before: Iterable[str]) -> None:
        self._readline = readline
        # Without these it writes escape sequences before anything is edited.
        for setting in ("enable-bracketed-paste", "enable-meta-key", "enable-keypad"):
            readline.parse_and_bind(f"set {setting} off")
        readline.set_auto_history(False)  # answers to questions are not worth bringing back
        for line in lines_before:
            readline.add_history(line)

    def read(self, prompt: str) -> str:
        return input(prompt)

    def remember(self, line: str) -> None:
        self._readline.add_history(line)


class TerminalInput:
    """The `TypedInput` of a terminal."""

    def __init__(self, stdin: TextIO) -> None:
        self._stdin = stdin

    def take(self) -> str:
        """Take the lines that are there, and those of a paste that still come."""
        number = self._stdin.fileno()
        typed = b""
        while select.select([number], [], [], _PASTE_GAP_S)[0]:
            piece = os.read(number, _MOST_BYTES_AT_ONCE)
            typed += piece
            if not piece or len(typed) >= _MOST_BYTES:
                break
        lines = typed.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        return lines.rstrip("\n")  # the enter key is \r while readline has the terminal

    def drop_rest(self) -> None:
        """Forget the line that is being typed."""
        termios.tcflush(self._stdin, termios.TCIFLUSH)
