"""A command's output: without keys, limited in memory, complete on disk."""

import codecs
import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Protocol

from agent_tui.omissions import omission_mark
from agent_tui.secret_text import REMOVED, mask_values
from agent_tui.tools.shorten import OutputLimits, Shortened, keep_ends, new_output_file, plain_text

MAX_KEPT_BYTES = 50_000_000
"""Bytes; output beyond this is not stored on disk."""

_HEAD_BYTES = 100_000
_TAIL_BYTES = 400_000
"""Bytes of a long output held in memory: enough for the shortened text, cleaned."""

_SHOWN_BYTES = 100_000
"""Bytes at the end of the stored file that are read for display."""


class EmitOutput(Protocol):
    """Takes output as it arrives."""

    def __call__(self, text: str, skipped_lines: int = 0, /) -> None:
        """Take `text`, before which `skipped_lines` lines were left out."""
        ...


class CommandOutput:
    """The output of one command, returned in pieces: each time what came since the last call.

    If the file cannot be written (disk full), the command continues and only the ends are kept.

    Args:
        folder: Where the file with the whole output goes.
        secrets: Values that must not be in the pieces or the file.
    """

    def __init__(self, folder: Path, secrets: Sequence[str]) -> None:
        self._folder = folder
        self._secrets = tuple(secrets)
        self._hidden = sorted((os.fsencode(value) for value in secrets), key=len, reverse=True)
        self._withheld = b""
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._may_keep = True
        self._is_over = False
        self._unread = _Ends()
        self._lines_taken = 0
        self._total_bytes = 0

    @property
    def path(self) -> Path | None:
        """The file with all output so far; None if there is none or it cannot be stored."""
        return self._path

    def add(self, chunk: bytes) -> bytes:
        """Take in a chunk; returns the part that may be shown now."""
        ready = self._without_secrets(self._withheld + chunk)
        self._take_in(ready)
        return ready

    def close(self) -> None:
        """End the output."""
        rest, self._withheld = self._withheld, b""
        self._take_in(rest)
        self._is_over = True
        self._close_file()

    @property
    def unread_lines(self) -> int:
        """How many lines came since the last `take`, not counting blank ones at the end."""
        return self._unread.lines

    @property
    def is_kept_whole(self) -> bool:
        """Whether the file, if there is one, has all of the output."""
        return self._total_bytes <= MAX_KEPT_BYTES

    def take(self, limits: OutputLimits) -> Shortened:
        """The output since the last call, for the model; line numbers are those in the file."""
        held, missing = self._unread.join()
        held_back = self._unread.missing_lines
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        decoded = decoder.decode(held, final=self._is_over)
        self._unread = _Ends()
        self._unread.add(decoder.getstate()[0])
        text = mask_values(plain_text(decoded), self._secrets).rstrip("\n")
        kept = keep_ends(
            text,
            max_lines=limits.max_lines,
            max_bytes=limits.max_bytes,
            first_line=self._lines_taken + 1,
            lines_held_back=held_back,
        )
        self._lines_taken += held.count(b"\n") + held_back
        return replace(kept, omitted_bytes=kept.omitted_bytes + missing)

    def last_lines(self) -> str:
        """The end of the output, for the user. Reads the file: blocking.

        Raises:
            OSError: The file cannot be read.
        """
        if self._path is None:
            return ""
        with self._path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _SHOWN_BYTES, 0))
            return plain_text(file.read().decode("utf-8", "replace"))

    def drop_file(self) -> None:
        """Delete the file, which is no longer needed; no other is created."""
        self._may_keep = False
        self._close_file()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    def _without_secrets(self, piece: bytes) -> bytes:
        """`piece` without secrets; a possible start of one is held back until more arrives."""
        for value in self._hidden:
            piece = piece.replace(value, REMOVED.encode())
        begun = max((_overlap(piece, value) for value in self._hidden), default=0)
        self._withheld = piece[len(piece) - begun :]
        return piece[: len(piece) - begun]

    def _take_in(self, chunk: bytes) -> None:
        self._total_bytes += len(chunk)
        self._store(chunk)
        self._unread.add(chunk)

    def _store(self, chunk: bytes) -> None:
        if not (self._may_keep and chunk):
            return
        try:
            file = self._file or self._open()
            room = max(MAX_KEPT_BYTES - file.tell(), 0)
            file.write(chunk[:room])
            file.flush()
        except OSError:
            with suppress(OSError):
                self.drop_file()

    def _close_file(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with suppress(OSError):  # disk full
                file.close()

    def _open(self) -> BinaryIO:
        self._path, self._file = new_output_file(self._folder, "bash", ".log")
        return self._file


class _Ends:
    """Keeps the start and the end of a byte stream, and counts lines."""

    def __init__(self) -> None:
        self.lines = 0
        self._newlines = 0
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._dropped_bytes = 0
        self._dropped_lines = 0

    def add(self, chunk: bytes) -> None:
        self._count_lines(chunk)
        room = _HEAD_BYTES - len(self._head)
        self._head += chunk[: max(room, 0)]
        if len(chunk) > room:
            self._add_to_tail(chunk[max(room, 0) :])

    def join(self) -> tuple[bytes, int]:
        """The bytes kept, with a mark for omitted ones, and how many were omitted."""
        tail = b"".join(self._tail)
        missing = self._dropped_bytes
        gap = f"\n{omission_mark(f'{missing} bytes')}\n".encode() if missing else b""
        return b"".join((self._head, gap, tail)), missing

    def _count_lines(self, chunk: bytes) -> None:
        text = chunk.rstrip(b"\r\n")
        if text:
            self.lines = max(self.lines, 1) + self._newlines + text.count(b"\n")
            self._newlines = 0
        self._newlines += chunk.count(b"\n", len(text))

    @property
    def missing_lines(self) -> int:
        """How many more lines the output has than the kept text, whose mark takes two."""
        return self._dropped_lines - 2 if self._dropped_bytes else 0

    def _add_to_tail(self, chunk: bytes) -> None:
        self._tail.append(chunk)
        self._tail_bytes += len(chunk)
        while self._tail_bytes - len(self._tail[0]) >= _TAIL_BYTES:
            dropped = self._tail.popleft()
            self._tail_bytes -= len(dropped)
            self._dropped_bytes += len(dropped)
            self._dropped_lines += dropped.count(b"\n")


def _overlap(piece: bytes, value: bytes) -> int:
    """How many bytes at the end of `piece` are the start of `value`."""
    longest = min(len(value) - 1, len(piece))
    return next((n for n in range(longest, 0, -1) if piece.endswith(value[:n])), 0)
