"""Reading the terminal: what is pasted is never taken for keys, nor is what it tells of itself.

Textual's parser looks for escape sequences also within a marked paste; what follows an escape
character there becomes keys, an Enter or a Ctrl+G among them. Where pastes are not marked (GNU
screen, serial lines, ``tmux send-keys``), the time tells them from typing.
"""

import os
import re
import selectors
import signal
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import groupby

from textual import events
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

ASK_BACKGROUND = "\x1b]11;?\x07"
"""xterm's question for the colour of the background (OSC 11); terminals without it say nothing."""

# `re` compiles these at their first use, which the first paint does not wait for.
_BACKGROUND = r"\x1b\]11;([^\x07\x1b]*)(?:\x07|\x1b\\)"
_BACKGROUND_BEGUN = r"\x1b\](?:1(?:1(?:;[^\x07\x1b]{0,64}\x1b?)?)?)?$"
_COLOUR = r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})"
_ANSWER_BEGINS = "\x1b]"
_BEGIN, _END = "\x1b[200~", "\x1b[201~"
_TEXT = r"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+"
_LINES = r"(?s)[^\r\n][\r\n]."
_COLUMNS = r"[^\r\n]\t[^\r\n]"
_BREAKS = "\r\n\t"
_LONG_LINE_CHARS = 200
"""So many letters at once are handled as a paste: one by one, they would take a while to show."""
PASTE_GAP_S = 0.02
"""Keys closer together than this are not typed: fingers need 30 ms, key repeat 25 and more."""
_REST_S = 0.2
"""A line with its Enter that comes so soon after a paste is the rest of it: networks deliver a
paste in pieces, and nobody types a line that fast."""
_MORE_S = 0.005
"""How soon something must follow the Enter behind a single line; otherwise it sends the line."""
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


class Burst:
    """Tells pasted text from keys by what comes at once, for terminals that do not mark pastes.

    Several lines are a paste, each Enter included; so are columns with a tab between them, and a
    very long line. Enter behind a single line is a key, as that is also how scripts write into a
    terminal; so is Enter before anything else.
    """

    def __init__(self) -> None:
        self._parts: list[str | Message] = []
        self._has_begun = self._has_lines = False

    @property
    def wait_s(self) -> float:
        """For how many seconds to wait for more before `take`; 0 if more would change nothing."""
        if self._has_lines:
            return PASTE_GAP_S if self._parts else 0.0
        text = self._text
        may_be_lines = text.endswith(tuple(_BREAKS)) and text.strip(_BREAKS)
        return _MORE_S if may_be_lines or len(text) >= _LONG_LINE_CHARS else 0.0

    @property
    def _text(self) -> str:
        """What is written so far; for what was taken already stands a letter."""
        text = "".join(part for part in self._parts if isinstance(part, str))
        return f"-{text}" if text and self._has_begun else text

    def add(self, part: str | Message) -> None:
        """Add text, or what came between."""
        self._parts.append(part)
        self._has_lines = self._has_lines or re.search(_LINES, self._text) is not None

    def take(self) -> Iterator[str | Message]:
        """What has come so far, in order; strings are keys."""
        parts, self._parts = self._parts, []
        for is_text, run in groupby(parts, lambda part: isinstance(part, str)):
            if is_text:
                yield from self._tell("".join(map(str, run)))
            else:
                yield from run
            self._has_begun = self._has_begun or is_text

    def note_gap(self, gap_s: float, data: str) -> None:
        """Note that `data` comes `gap_s` after what came before: it may begin another burst."""
        is_line = data.endswith(("\r", "\n")) and data.strip(_BREAKS)
        if gap_s > (_REST_S if is_line and self._has_lines else PASTE_GAP_S):
            self._has_begun = self._has_lines = False

    def _tell(self, text: str) -> Iterator[str | Message]:
        """`text` as keys and pastes."""
        is_single = not self._has_lines
        if is_single and len(text) < _LONG_LINE_CHARS and not re.search(_COLUMNS, text):
            yield text
            return
        begin = 0 if self._has_begun else len(text) - len(text.lstrip(_BREAKS))
        end = len(text.rstrip(_BREAKS)) if is_single else len(text)
        yield text[:begin]
        if begin < end:
            yield events.Paste(text[begin:end])
        yield text[end:]


class PasteSafeParser(XTermParser):
    """Textual's parser, kept from looking into pastes, marked or not."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._before = ""
        self._pasted: list[str] | None = None
        self._fed_at = 0.0
        self._held = ""
        self._burst = Burst()

    @property
    def wait_s(self) -> float:
        """For how many seconds to wait for more before `flush`; 0 if nothing is held back."""
        return self._burst.wait_s

    def feed(self, data: str, gap_s: float = 0.0) -> Iterator[Message]:
        """The keys, pastes and other messages that `data` ends; an empty one ends the input.

        Args:
            data: What was read.
            gap_s: Seconds since something was read before.
        """
        self._fed_at = time.monotonic()
        if gap_s > PASTE_GAP_S:
            yield from self.flush()
        self._burst.note_gap(gap_s, data)
        if not data:
            yield from super().feed(data)
        while data:
            marker = _BEGIN if self._pasted is None else _END
            seen = self._before + data
            place = seen.find(marker)
            if place < 0:
                self._before = seen[1 - len(marker) :]
                yield from self._take(data)
                break
            rest = place + len(marker) - len(self._before)
            self._before = ""
            yield from self._take(data[:rest])
            yield from self._turn()
            data = data[rest:]
        if not self._burst.wait_s:
            yield from self.flush()

    def flush(self) -> Iterator[Message]:
        """What was held back, as nothing more came at once."""
        for part in self._burst.take():
            if isinstance(part, str):
                for character in part:
                    yield from self._sequence_to_key_events(character)
            else:
                yield part

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
            self._collect(data)
        else:
            self._pasted.append(data)

    def _collect(self, data: str) -> None:
        """Add `data` to the burst: its text as it is, its sequences as their messages."""
        place = 0
        while place < len(data):
            is_in_sequence = self._awaiting.timeout is not None
            if not is_in_sequence and (text := re.compile(_TEXT).match(data, place)):
                self._burst.add(text[0])
                place = text.end()
            else:
                for message in super().feed(data[place]):
                    self._burst.add(message)
                place += 1

    def _turn(self) -> Iterator[Message]:
        """A marker was read whole: into a paste, or out of it."""
        if self._pasted is None:
            self._pasted = []
            yield from self.flush()
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
        clock, has_waited, arrived_s = InputClock(), False, 0.0
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                wait_s = parser.wait_s
                # A busy machine wakes this thread late: what came meanwhile came in time.
                if has_waited or selector.select(wait_s or _TICK_S) or selector.select(0):
                    before_s, arrived_s = arrived_s, clock.read(has_waited=has_waited)
                    data = self._read()
                    if not data:
                        os.kill(os.getpid(), signal.SIGHUP)
                        break
                    if text := decode(data):
                        self._tell(parser.feed(text, arrived_s - before_s), arrived_s)
                    clock.note_handled()
                    has_waited = bool(selector.select(0))
                else:
                    self._tell(parser.flush(), arrived_s)
                self._tell(parser.tick())
        self._tell(parser.flush(), arrived_s)
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
