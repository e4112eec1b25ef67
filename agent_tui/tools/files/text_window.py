"""Reads some lines of a text file without loading all of it into memory."""

import codecs
import hashlib
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from agent_tui.omissions import cut_end_mark
from agent_tui.regular_files import open_in, open_regular_file
from agent_tui.safe_paths import open_folder
from agent_tui.tools.base import ToolContext, ToolError
from agent_tui.tools.files.documents import is_document
from agent_tui.tools.files.images import image_type
from agent_tui.tools.files.text_files import GUESSED_BYTES, likely_encodings

_CHUNK_BYTES = 1 << 18
_PROBED_BYTES = 64
_LARGE_BYTES = 5_000_000
"""Bytes; editors are not asked for larger files (`acp/editor.py`)."""
_MAX_FILE_BYTES = 2_000_000_000
"""Bytes; takes about ten seconds to read, to count the lines."""


@dataclass(frozen=True, slots=True)
class Window:
    """Which lines are wanted, and how much of them is kept.

    Args:
        first: Number of the first line, from 1.
        count: How many lines.
        max_bytes: Lines are kept until they exceed this, line numbers not counted.
        max_line_chars: Longer lines are cut, with a mark.
    """

    first: int
    count: int
    max_bytes: int
    max_line_chars: int


@dataclass(slots=True)
class WindowedText:
    """The kept lines of a window, and the total number of lines in the text."""

    window: Window
    lines: list[str] = field(default_factory=list[str])
    total_lines: int = 0
    _kept_bytes: int = 0
    _newlines: int = 0
    _begun: str = ""
    _begun_chars: int = 0
    _is_open: bool = False

    def add(self, text: str) -> None:
        """Take in the next piece; only ``\\n`` ends a line."""
        if not text:
            return
        if self._may_hold_wanted(text):
            *ended, begun = text.split("\n")
            for number, piece in enumerate(ended, start=self._newlines + 1):
                self._go_on(number, piece)
                self._end(number)
            self._go_on(self._newlines + len(ended) + 1, begun)
        self._newlines += text.count("\n")
        self._is_open = not text.endswith("\n")

    def finish(self) -> None:
        """End the text. A newline at the very end does not begin another line."""
        if self._is_open:
            self._end(self._newlines + 1)
        self.total_lines = self._newlines + self._is_open

    def _may_hold_wanted(self, text: str) -> bool:
        last = self.window.first + self.window.count - 1
        is_before = self._newlines + text.count("\n") + 1 < self.window.first
        return not is_before and self._newlines + 1 <= last and not self._is_full

    @property
    def _is_full(self) -> bool:
        return self._kept_bytes > self.window.max_bytes

    def _is_wanted(self, number: int) -> bool:
        first, count = self.window.first, self.window.count
        return first <= number < first + count and not self._is_full

    def _go_on(self, number: int, piece: str) -> None:
        if self._is_wanted(number):
            self._begun += piece[: self.window.max_line_chars - len(self._begun)]
            self._begun_chars += len(piece)

    def _end(self, number: int) -> None:
        if self._is_wanted(number):
            left = self._begun_chars - len(self._begun)
            line = self._begun + (cut_end_mark(left) if left else "")
            self.lines.append(line)
            self._kept_bytes += len(line.encode("utf-8", "surrogatepass")) + 1
        self._begun, self._begun_chars = "", 0


def windowed_text(pieces: Iterable[str], window: Window) -> WindowedText:
    """The lines of `window` in a text that arrives in pieces, with ``\\r\\n`` as ``\\n``."""
    found = WindowedText(window)
    held = ""
    for piece in pieces:
        text = held + piece
        held = "\r" if text.endswith("\r") else ""
        found.add(text.removesuffix("\r").replace("\r\n", "\n"))
    found.add(held)
    found.finish()
    return found


def is_large_text(path: Path) -> bool:
    """Whether the file at `path` is large enough to read only a window of it.

    Smaller files are read whole, as an editor may have them open; so are images and documents.
    """
    try:
        if not path.is_file() or path.stat().st_size <= _LARGE_BYTES:
            return False
        with open_regular_file(path) as file:
            beginning = file.read(_PROBED_BYTES)
    except OSError:
        return False
    return not (image_type(beginning) or is_document(path, beginning))


@contextmanager
def opened_text(path: Path, context: ToolContext) -> Generator[BinaryIO]:
    """Open the file at `path` to read a window of it.

    Raises:
        ToolError: It is too large to scan, or cannot be read.
    """
    try:
        with open_folder(path.parent) as folder, open_in(folder, path) as file:
            if os.fstat(file.fileno()).st_size > _MAX_FILE_BYTES:
                raise ToolError(
                    f"{context.shown(path)} is larger than {_MAX_FILE_BYTES // 10**9} GB. Look at "
                    "parts of it with grep, or with head, tail or sed in bash."
                )
            yield file
    except OSError as error:
        raise ToolError(f"{context.shown(path)} cannot be read: {error.strerror}.") from error


def read_window(file: BinaryIO, window: Window) -> tuple[WindowedText, str] | None:
    """The lines of `window` of an open file, and the file's digest; None if it is binary.

    The whole file is read, but only one piece at a time is in memory, besides the kept lines.

    Raises:
        OSError: It cannot be read.
    """
    for encoding, bom in likely_encodings(file.read(GUESSED_BYTES)):
        file.seek(0)
        digest = hashlib.sha256(file.read(len(bom)))
        try:
            found = windowed_text(_decoded(file, encoding, digest.update), window)
        except UnicodeError:
            continue
        return found, digest.hexdigest()
    return None


def _decoded(file: BinaryIO, encoding: str, look_at: Callable[[bytes], None]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)()
    while chunk := file.read(_CHUNK_BYTES):
        look_at(chunk)
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)
