"""Lines from the user, and Ctrl+C: ordinary terminal input, with line editing if possible."""

import os
import select
import signal
import termios
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Protocol, TextIO

from agent_tui.commands.core.short_words import count_text
from agent_tui.safe_text import safe_text

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_WAKE = signal.SIGUSR1
"""What a thread sends to the main thread, which waits in a system call."""


class Woken(Exception):
    """There is something to do before a message is read; nothing of it was typed."""


class Interrupts:
    """Ctrl+C interrupts reading a line with `KeyboardInterrupt`; during work it only calls `stop`.

    Signals that end the program raise `SystemExit`, so that everything open is closed.

    Args:
        stop: Stops the work.
        is_typing: Whether the line that is read has begun.
    """

    def __init__(
        self, stop: Callable[[], None], is_typing: Callable[[], bool] = lambda: False
    ) -> None:
        self._stop = stop
        self._is_typing = is_typing
        self._is_reading = self._may_wake = self._is_woken = False

    @contextmanager
    def handle_signals(self) -> Generator[None]:
        """Handle signals this way inside the block; ignored signals stay ignored."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, _WAKE, *_ENDING)}
        caught = [number for number, handler in before.items() if handler != signal.SIG_IGN]
        for number in caught:
            signal.signal(number, self._handle)
        try:
            yield
        finally:
            for number in caught:
                signal.signal(number, before[number])

    @contextmanager
    def reading(self, may_wake: bool = False) -> Generator[None]:
        """Make Ctrl+C raise `KeyboardInterrupt` inside the block, and `wake` raise `Woken`.

        Args:
            may_wake: Whether `wake` may; it also does so for a call before the block.
        """
        self._is_reading, self._may_wake = True, may_wake
        try:
            if may_wake:
                self._wake_up()
            yield
        finally:
            self._is_reading = self._may_wake = False

    def wake(self) -> None:
        """Interrupt the reading of a message with `Woken`, now or when it begins next.

        Any thread may call it. A message that has begun is read to its end.
        """
        self._is_woken = True
        if self._may_wake:
            signal.pthread_kill(threading.main_thread().ident or 0, _WAKE)

    def _wake_up(self) -> None:
        if self._is_woken and self._may_wake and not self._is_typing():
            self._is_woken = False
            raise Woken

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number == _WAKE:
            self._wake_up()
            return
        if number != signal.SIGINT:
            raise SystemExit(128 + number)
        if self._is_reading:
            raise KeyboardInterrupt
        self._stop()


BLOCK = '"""'
_MORE = "... "
"""The prompt for further lines of a message."""

_DUMB = ("", "dumb", "emacs", "unknown")
_MOST_BYTES_AT_ONCE = 65_536
_MOST_BYTES = 1_000_000
_PASTE_GAP_S = 0.05
"""Pauses within a paste are shorter."""


class LineSource(Protocol):
    """Where lines come from."""

    def read(self, prompt: str, begun: str = "") -> str:
        """The line typed after `prompt` and `begun`, with `begun`, without its newline.

        Raises:
            EOFError: There are no more.
            KeyboardInterrupt: Ctrl+C was pressed.
        """
        ...

    def is_begun(self) -> bool:
        """Whether part of the line that is read was typed; false if only the terminal knows."""
        ...

    def remember(self, line: str) -> None:
        """Let the user recall `line` with a key, if that is possible."""
        ...


class TypedInput(Protocol):
    """Input that was typed but is not read yet."""

    def take(self) -> str:
        """Remove and return it; empty if there is none."""
        ...

    def drop_rest(self) -> None:
        """Discard the line that is being typed."""
        ...


@dataclass(frozen=True, slots=True)
class TypedMessage:
    """A message from the user.

    `is_pasted`: its lines came at once, so none is a command. `is_held`: it was typed earlier.
    """

    text: str
    is_pasted: bool = False
    is_held: bool = False


class Keyboard:
    """Asks for lines.

    Args:
        source: Reads one line.
        reading: Makes Ctrl+C interrupt the reading, and what wakes it, if told so.
        unread: Input typed before it was requested.
        held: Receives what `hold` keeps, and has what an earlier keyboard held; None: no message
            will be read.
    """

    def __init__(
        self,
        source: LineSource,
        reading: Callable[[bool], AbstractContextManager[object]],
        unread: TypedInput,
        held: list[str] | None,
    ) -> None:
        self._source = source
        self._reading = reading
        self._unread = unread
        self._held = held
        self._begun = ""

    def line(self, prompt: str, begun: str = "", *, may_wake: bool = False) -> str:
        """Read one line. Takes and raises what `LineSource.read` does.

        Raises:
            Woken: It `may_wake`, and was woken.
        """
        with self._reading(may_wake):
            return self._source.read(safe_text(prompt, keep_newlines=False), begun)

    def take_typed(self) -> str:
        """Remove what was typed so far, and return it."""
        lines = self._unread.take()
        self._unread.drop_rest()
        return lines

    def hold(self, typed: str) -> bool:
        """Keep what was typed and answers no question: its lines are a message of their own.

        The next message begins with a last line that no Enter ended. False if there will be none.
        """
        if self._held is None:
            return False
        self._held.append(typed)
        return True

    def next_message(self, prompt: str) -> TypedMessage:
        """The next message for the agent: what is held, else what `message` reads.

        A key recalls it later, if it is one line.
        """
        typed = TypedMessage("")
        while self._held and not typed.text:
            lines, _, rest = self._held.pop(0).rpartition("\n")
            self._begun += rest
            text = lines.strip()
            typed = TypedMessage(text, is_pasted="\n" in text, is_held=True)
        if not typed.text:
            begun, self._begun = self._begun, ""
            typed = self.message(prompt, begun)
        if typed.text and "\n" not in typed.text:
            self._source.remember(typed.text)
        return typed

    def message(self, prompt: str, begun: str = "", *, confirms: bool = True) -> TypedMessage:
        r"""A message: a line, with ``\`` at its end also the next; or what `BLOCK` encloses.

        Lines that arrive together with the first were pasted: they are one message.

        Args:
            prompt: What is asked.
            begun: The beginning of its first line.
            confirms: Whether pasted lines wait for Enter, so that more can follow them.
        """
        first = self.line(prompt, begun, may_wake=not begun)
        if first.strip() == BLOCK:
            return TypedMessage(self._block())
        if not first.endswith("\\"):
            pasted = self._pasted_behind(first, confirms=confirms)
            return TypedMessage("\n".join(pasted).strip(), len(pasted) > 1)
        lines = [first]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(self.line(_MORE))
        return TypedMessage("\n".join(lines).strip())

    def _pasted_behind(self, first: str, *, confirms: bool) -> list[str]:
        """`first` with the lines that came with it, and what is typed until Enter is pressed."""
        lines = [first]
        while more := self._unread.take():
            *entered, rest = more.split("\n")
            lines += entered
            if not confirms:
                lines += [rest] * bool(rest)
                continue
            pasted = count_text(len(lines) - 1 + bool(rest), "more line")
            try:
                last = self.line(f"Pasted, with {pasted}. Enter sends it: ", rest)
            except EOFError:
                last = rest
            lines += [last] * bool(last)
        return lines

    def _block(self) -> str:
        lines: list[str] = []
        while (line := self.line(_MORE)).strip() != BLOCK:
            lines.append(line)
        return "\n".join(lines)


def terminal_lines(
    lines_before: Iterable[str], environ: Mapping[str, str], stdin: TextIO, stdout: TextIO
) -> LineSource:
    """Lines from the terminal: with readline if it can draw, else as the terminal sends them.

    Args:
        lines_before: Lines that the up key recalls, oldest first.
        environ: ``TERM`` says whether the terminal can draw; one that cannot may edit by itself.
        stdin: The terminal.
        stdout: Receives prompts.
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
    """Lines as the terminal sends them."""

    def __init__(self, stdin: TextIO, stdout: TextIO) -> None:
        self._stdin = stdin
        self._stdout = stdout

    def read(self, prompt: str, begun: str = "") -> str:
        self._stdout.write(prompt + begun)
        self._stdout.flush()
        try:
            line = self._stdin.readline()
        except KeyboardInterrupt:
            if self._stdin.isatty():
                termios.tcflush(self._stdin, termios.TCIFLUSH)
            raise
        if not line:
            raise EOFError
        return begun + line.removesuffix("\n")

    def is_begun(self) -> bool:
        return False

    def remember(self, line: str) -> None:
        pass


class _Editing(Protocol):
    """The functions used of the module `readline`."""

    def parse_and_bind(self, string: str, /) -> None: ...
    def add_history(self, string: str, /) -> None: ...
    def set_auto_history(self, enabled: bool, /) -> None: ...
    def insert_text(self, string: str, /) -> None: ...
    def get_line_buffer(self) -> str: ...
    def set_startup_hook(self, function: Callable[[], object] | None = None, /) -> None: ...


class _EditedLines:
    """Lines that the user can edit; messages can be recalled."""

    def __init__(self, readline: _Editing, lines_before: Iterable[str]) -> None:
        self._readline = readline
        # Without these settings, readline writes escape sequences before anything is edited.
        for setting in ("enable-bracketed-paste", "enable-meta-key", "enable-keypad"):
            readline.parse_and_bind(f"set {setting} off")
        readline.set_auto_history(False)  # answers to questions are not worth recalling
        for line in lines_before:
            readline.add_history(line)

    def read(self, prompt: str, begun: str = "") -> str:
        self._readline.set_startup_hook(lambda: self._readline.insert_text(begun))
        return input(prompt)

    def is_begun(self) -> bool:
        return bool(self._readline.get_line_buffer())

    def remember(self, line: str) -> None:
        self._readline.add_history(line)


class TerminalInput:
    """The `TypedInput` of a terminal."""

    def __init__(self, stdin: TextIO) -> None:
        self._stdin = stdin

    def take(self) -> str:
        """Take what is available and what is still arriving of a paste, its last line too."""
        number = self._stdin.fileno()
        typed = b""
        with _unfinished_lines(number):
            while select.select([number], [], [], _PASTE_GAP_S)[0]:
                piece = os.read(number, _MOST_BYTES_AT_ONCE)
                typed += piece
                if not piece or len(typed) >= _MOST_BYTES:
                    break
        # readline makes the Enter key send \r
        return typed.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")

    def drop_rest(self) -> None:
        """Discard the line that is being typed."""
        termios.tcflush(self._stdin, termios.TCIFLUSH)


@contextmanager
def keep_typed_lines(stdin: TextIO) -> Generator[None]:
    """Keep what is typed during work when Ctrl+C stops it; terminals discard it otherwise."""
    if not stdin.isatty():
        yield
        return
    with _local_modes(stdin.fileno(), added=termios.NOFLSH):
        yield


def _unfinished_lines(terminal: int) -> AbstractContextManager[None]:
    """Let a line be read that no Enter ended; the end of a paste often is one."""
    return _local_modes(terminal, removed=termios.ICANON)


@contextmanager
def _local_modes(terminal: int, *, added: int = 0, removed: int = 0) -> Generator[None]:
    before = termios.tcgetattr(terminal)
    local_modes = 3
    changed = [*before]
    changed[local_modes] = before[local_modes] & ~removed | added
    termios.tcsetattr(terminal, termios.TCSANOW, changed)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
