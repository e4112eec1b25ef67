"""Reading GGUF's numbers, texts and lists within bounds, from files nobody vouches for."""

import struct
from typing import BinaryIO, Final, TypeAlias

from agent_tui.errors import ModelFileError

FieldValue: TypeAlias = int | float | str | None
"""A number or a text; None for a list, which is only passed over."""

MAX_HEADER_BYTES: Final = 64 * 1024 * 1024
"""Four times the largest header known (a vocabulary of 262,000 words and its merges)."""

_MAX_KEY_BYTES: Final = 65_535
_MAX_TEXT_BYTES: Final = 4 * 1024 * 1024
_READ_BYTES: Final = 64 * 1024
_STRING: Final = 8
_LIST: Final = 9
_NUMBERS: Final = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: struct.Struct("<I"),
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    7: struct.Struct("<B"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}
_U32: Final = _NUMBERS[4]
_U64: Final = _NUMBERS[10]


class FieldReader:
    """Reads an open GGUF file from its start, never past `MAX_HEADER_BYTES` or its end.

    Args:
        file: Opened unbuffered or buffered, at its first byte.
        size_bytes: Of the file.
        label: What errors call the file.

    Every method raises `ModelFileError` where the file ends early or claims too much, and
    `OSError` where it cannot be read.
    """

    def __init__(self, file: BinaryIO, size_bytes: int, label: str) -> None:
        self._file = file
        self._end = min(size_bytes, MAX_HEADER_BYTES)
        self._is_capped = size_bytes > MAX_HEADER_BYTES
        self._label = label
        self._block = b""
        self._block_start = 0
        self.position = 0

    def damaged(self, what: str) -> ModelFileError:
        """The error that says what is wrong with the file."""
        return ModelFileError(
            f"{self._label} is not a usable GGUF file: {what}.", "Download or copy it again."
        )

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        start = self.position
        self.skip(count)
        offset = start - self._block_start
        if not 0 <= offset <= len(self._block) - count:
            self._file.seek(start)
            self._block = self._file.read(max(count, _READ_BYTES))
            self._block_start, offset = start, 0
            if len(self._block) < count:
                raise self._ends_early()
        return self._block[offset : offset + count]

    def skip(self, count: int) -> None:
        """Pass over `count` bytes."""
        if count > self.remaining:
            raise self._ends_early()
        self.position += count

    @property
    def remaining(self) -> int:
        """How many bytes may still be read."""
        return self._end - self.position

    def u32(self) -> int:
        """The next four bytes as a number."""
        return int(_U32.unpack(self.take(4))[0])

    def u64(self) -> int:
        """The next eight bytes as a number."""
        return int(_U64.unpack(self.take(8))[0])

    def key(self) -> str:
        """A name: of a field or of a tensor."""
        return self._text(_MAX_KEY_BYTES, "a name")

    def value(self, *, is_wanted: bool) -> FieldValue:
        """A value with its type before it; None for a list, and for a text that nobody wants."""
        kind = self.u32()
        if kind == _LIST:
            self._skip_list()
            return None
        if kind == _STRING:
            if is_wanted:
                return self._text(_MAX_TEXT_BYTES, "a string")
            self.skip(self.u64())
            return None
        number = self._number(kind)
        found: int | float = number.unpack(self.take(number.size))[0]
        return found

    def _text(self, limit: int, what: str) -> str:
        length = self.u64()
        if length > limit:
            raise self.damaged(f"{what} in it has {length:,} bytes")
        return self.take(length).decode("utf-8", "replace")

    def _skip_list(self) -> None:
        kind, count = self.u32(), self.u64()
        if kind == _LIST:
            raise self.damaged("it has a list of lists")
        if kind != _STRING:
            self.skip(count * self._number(kind).size)
            return
        if count > self.remaining // _U64.size:
            raise self._ends_early()
        for _ in range(count):
            self.skip(self.u64())

    def _number(self, kind: int) -> struct.Struct:
        number = _NUMBERS.get(kind)
        if number is None:
            raise self.damaged(f"it has a value of the unknown type {kind}")
        return number

    def _ends_early(self) -> ModelFileError:
        if self._is_capped:
            return self.damaged(f"its metadata is larger than {MAX_HEADER_BYTES:,} bytes")
        return self.damaged("it ends in the middle of its metadata")
