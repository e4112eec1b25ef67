"""Reading the terminal: what is pasted is never taken for keys, nor is what it tells of itself.

Textual's parser looks for escape sequences also within a marked paste; what follows an escape
character there becomes keys, an Enter or a Ctrl+G among them.
"""

import os
import re
import selectors
import signal
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from textual import events
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from agent_tui.ui.prompt.lines_area import PASTE_GAP_S

ASK_BACKGROUND = "\x1b]11;?\x07"
"""xterm's question for the colour of the background (OSC 11); terminals without it say nothing."""

# `re` compiles these at their first use, which the first paint does not wait for.
_BACKGROUND = r"\x1b\]11;([^\x07\x1b]*)(?:\x07|\x1b\\)"
_BACKGROUND_BEGUN = r"\x1b\](?:1(?:1(?:;[^\x07\x1b]{0,64}\x1b?)?)?)?$"
_COLOUR = r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})"
_ANSWER_BEGINS = "\x1b]"
_BEGIN, _END = "\x1b[200~", "\x1b[201~"
_CHUNK_BYTES = 65_536
_TICK_S = 0.1
PATIENCE_S = 2.0
"""A paste without an end is over after so long without input."""


class BackgroundTold(Message):
    """The terminal reported its background colour."""

    def __init__(self, is_light: bool) -> None:
        super().__init__()
        self.is_light = is_light


def is_light(colour: str) -> bool | None:
    """Whether a colour as terminals tell it (``rgb:ffff/ffff/ffff``) is light; None: not known."""
    if (found := re.match(_COLOUR, colour)) is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5  # relative luminance (ITU-R BT.709)


class PasteSafeParser(XTermParser):
    """Textual's parser, kept from looking into marked pastes."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._before = ""
        self._pasted: list[str] | None = None
        self._fed_at = 0.0
        self._held = ""

    def feed(self, data: str) -> Iterator[Message]:
        """The keys, pastes and other messages that `data` ends; an empty one ends the input."""
        self._fed_at = time.monotonic()
        if not data:
            yield from super().feed(data)
        while data:
            marker = _BEGIN if self._pasted is None else _END
            seen = self._before + data
            place = seen.find(marker)
            if place < 0:
                self._before = seen[1 - len(marker) :]
                yield from self._take(data)
                return
            rest = place + len(marker) - len(self._before)
            self._before = ""
            yield from self._take(data[:rest])
            yield from self._turn()
            data = data[rest:]

    def tick(self) -> Iterator[Message]:
        """Messages for input that is over because nothing more came."""
        if self._pasted is not None and time.monotonic() - self._fed_at > PATIENCE_S:
            self._pasted.append(_END)
            self._before = ""
            yield from self._turn()
        if self._held and time.monotonic() - self._fed_at > _TICK_S:
            held, self._held = self._held, ""
            yield from super().feed(held)
        yield from super().tick()

    def _take(self, data: str) -> Iterator[Message]:
        if self._pasted is None:
            data, self._held = self._held + data, ""
            if _ANSWER_BEGINS in data:
                for colour in re.findall(_BACKGROUND, data):
                    if (light := is_light(colour)) is not None:
                        yield BackgroundTold(light)
                data = re.sub(_BACKGROUND, "", data)
                if begun := re.search(_BACKGROUND_BEGUN, data):
                    data, self._held = data[: begun.start()], begun[0]
            if data:
                yield from super().feed(data)
        else:
            self._pasted.append(data)

    def _turn(self) -> Iterator[Message]:
        """A marker was read whole: into a paste, or out of it."""
        if self._pasted is None:
            self._pasted = []
            return
        text = "".join(self._pasted).removesuffix(_END)
        self._pasted = None
        for message in super().feed(_END):  # the beginning was already reported
            if not isinstance(message, events.Paste):
                yield message
        yield events.Paste(text.replace("\0", ""))


class InputClock:
    """The times of keys, by when their bytes arrived.

    It stands still while read bytes are being handled and others wait: a paste stays one burst,
    however long a busy machine takes to handle it.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._arrived_s = self._handled_s = float("-inf")

    def read(self, *, has_waited: bool) -> float:
        """The time of bytes read now; `has_waited`: they were there when others were handled."""
        now = self._clock()
        idle_s = 0.0 if has_waited else now - self._handled_s
        self._arrived_s = self._arrived_s + idle_s if idle_s <= PASTE_GAP_S else now
        return self._arrived_s

    def note_handled(self) -> None:
        """Note that what was read is handled."""
        self._handled_s = self._clock()


class TerminalDriver(LinuxDriver):
    """Textual's driver for terminals with that parser; bytes that are no UTF-8 do not stop it."""

    def run_input_thread(self) -> None:
        """Read until the driver is told to stop, or the terminal is gone: then the program leaves.

        The kernel tells only the session's leader of that, which may be ``su`` or ``sudo``.
        """
        parser = PasteSafeParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        clock, has_waited = InputClock(), False
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if has_waited or selector.select(_TICK_S):
                    arrived_s = clock.read(has_waited=has_waited)
                    data = self._read()
                    if not data:
                        os.kill(os.getpid(), signal.SIGHUP)
                        break
                    if text := decode(data):
                        self._tell(parser.feed(text), arrived_s)
                    clock.note_handled()
                    has_waited = bool(selector.select(0))
                self._tell(parser.tick())
        with suppress(EOFError, ParseError):
            for _ in parser.feed(""):
                pass

    def _read(self) -> bytes:
        """The input; empty if the terminal is gone."""
        try:
            return os.read(self.fileno, _CHUNK_BYTES)
        except OSError:
            return b""

    def _tell(self, messages: Iterable[Message], arrived_s: float | None = None) -> None:
        for message in messages:
            if arrived_s is not None:
                message.time = arrived_s
            self.process_message(message)
