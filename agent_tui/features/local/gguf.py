"""Reads what a GGUF file says about itself: name, window, chat template, and use.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The package ``gguf`` also
reads it, but loads numpy and the whole vocabulary for the few values needed here.
"""

import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias

from agent_tui.errors import ModelFileError
from agent_tui.regular_files import open_regular_file

FieldValue: TypeAlias = int | float | str | None
"""A number or a text; None for a list, which is skipped."""

MAX_HEADER_BYTES: Final = 64 * 1024 * 1024
"""Four times the largest known header (a vocabulary of 262,000 words and its merges)."""

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
        file: Opened unbuffered or buffered, positioned at its first byte.
        size_bytes: The size of the file.
        label: The file's name in errors.

    Every method raises `ModelFileError` if the file ends early or claims too much, and
    `OSError` if it cannot be read.
    """

    def __init__(self, file: BinaryIO, size_bytes: int, label: str) -> None:
        self._file = file
        self._end = min(size_bytes, MAX_HEADER_BYTES)
        self._is_capped = size_bytes > MAX_HEADER_BYTES
        self._label = label
        self._block = b""
        self._block_start = 0
        self.position = 0

    def damage_error(self, what: str) -> ModelFileError:
        """The error that says what is wrong with the file."""
        return ModelFileError(
            f"{self._label} is not a usable GGUF file: {what}.", "Download or copy it again."
        )

    def take(self, count: int) -> bytes:
        """Read and return the next `count` bytes."""
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
        """Skip `count` bytes."""
        if count > self.remaining:
            raise self._ends_early()
        self.position += count

    @property
    def remaining(self) -> int:
        """How many more bytes may be read."""
        return self._end - self.position

    def u32(self) -> int:
        """Read the next four bytes as a number."""
        return int(_U32.unpack(self.take(4))[0])

    def u64(self) -> int:
        """Read the next eight bytes as a number."""
        return int(_U64.unpack(self.take(8))[0])

    def key(self) -> str:
        """Read the name of a field or of a tensor."""
        return self._text(_MAX_KEY_BYTES, "a name")

    def value(self, *, is_wanted: bool) -> FieldValue:
        """Read a typed value; None for a list, and for a text if `is_wanted` is false."""
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
            raise self.damage_error(f"{what} in it has {length:,} bytes")
        return self.take(length).decode("utf-8", "replace")

    def _skip_list(self) -> None:
        kind, count = self.u32(), self.u64()
        if kind == _LIST:
            raise self.damage_error("it has a list of lists")
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
            raise self.damage_error(f"it has a value of the unknown type {kind}")
        return number

    def _ends_early(self) -> ModelFileError:
        if self._is_capped:
            return self.damage_error(f"its metadata is larger than {MAX_HEADER_BYTES:,} bytes")
        return self.damage_error("it ends in the middle of its metadata")


GgufUse: TypeAlias = Literal["chat", "embedding", "projector", "adapter", "vocabulary"]
"""What a file can be used for; only ``chat`` models can hold a conversation."""

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_MAX_DIMENSIONS: Final = 4
_ALIGNMENT: Final = 32
"""The alignment in bytes if the file does not state one."""
_MAX_WINDOW: Final = 2**31
_EMBEDDING_ARCHITECTURE: Final = re.compile(r"bert|t5encoder|embedding")
_QUANTISATIONS: Final = {
    **{0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K"},
    **{11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S"},
    **{17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS"},
    **{23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S"},
    **{29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4"},
}
"""``general.file_type`` -> its usual name (llama.cpp, include/llama.h, enum llama_ftype)."""
_BLOCKS: Final = {
    **{0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34)},
    **{10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210)},
    **{16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18)},
    **{21: (256, 110), 22: (256, 82), 23: (256, 136), 29: (256, 56), 30: (1, 2)},
    **{34: (256, 54), 35: (256, 66), 39: (32, 17)},
}
"""Tensor type -> values and bytes per block (ggml/src/ggml-common.h)."""
_WANTED: Final = re.compile(
    r"general\.(architecture|name|license|type|file_type|alignment)"
    r"|tokenizer\.chat_template(\.tool_use)?|split\.(no|count)"
    r"|[^.]+\.(context_length|pooling_type)"
)
_MAX_COUNT: Final = 65_536
"""Limit on fields and on tensors; the largest models have about fifty and a few thousand."""


@dataclass(frozen=True, slots=True)
class GgufInfo:
    """What a GGUF file says about itself. Empty texts and None: not stated.

    `window` in tokens is the window the model was trained for. `expected_bytes` is the minimum size
    of a complete file. `part_number` counts from 0 among `part_count` files of one model.
    """

    size_bytes: int
    expected_bytes: int
    use: GgufUse
    architecture: str = ""
    name: str = ""
    licence: str = ""
    quantisation: str = ""
    window: int | None = None
    has_chat_template: bool = False
    knows_tools: bool = False
    part_number: int = 0
    part_count: int = 1

    @property
    def is_complete(self) -> bool:
        """Whether no tensor reaches past the end of the file."""
        return self.size_bytes >= self.expected_bytes


def read_gguf(path: Path) -> GgufInfo:
    """Read the description at the start of a GGUF file (version 2 or 3, little-endian).

    Reads at most `MAX_HEADER_BYTES`, whatever the file claims.

    Raises:
        ModelFileError: It cannot be read, is not a GGUF file, or contradicts itself.
    """
    try:
        with open_regular_file(path, buffering=0) as file:
            return _read(file, os.fstat(file.fileno()).st_size, str(path))
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} does not exist.", "Check the path.") from error
    except IsADirectoryError as error:
        raise ModelFileError(f"{path} is a folder.", "Name a .gguf file in it.") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ModelFileError(f"{path} cannot be read: {reason}.", "Check the file.") from error
    except ValueError as error:  # a NUL in the path
        raise ModelFileError(f"{str(path)!r} is not a path.", "Name a .gguf file.") from error


def _read(file: BinaryIO, size_bytes: int, label: str) -> GgufInfo:
    if not size_bytes:
        raise ModelFileError(f"{label} is empty.", "Download or copy it again.")
    reader = FieldReader(file, size_bytes, label)
    _check_start(reader, label)
    tensor_count, field_count = reader.u64(), reader.u64()
    if max(tensor_count, field_count) > _MAX_COUNT:
        raise reader.damage_error(f"it claims {max(tensor_count, field_count):,} entries")
    fields: dict[str, FieldValue] = {}
    for _ in range(field_count):
        key = reader.key()
        is_wanted = _WANTED.fullmatch(key) is not None
        value = reader.value(is_wanted=is_wanted)
        if is_wanted:
            fields.setdefault(key, value)
    alignment = _number(fields, "general.alignment", _ALIGNMENT)
    if alignment < 1:
        raise reader.damage_error(f"its alignment is {alignment}")
    data_bytes = _data_bytes(reader, tensor_count)
    data_start = -(-reader.position // alignment) * alignment if data_bytes else reader.position
    return _info(fields, tensor_count, size_bytes, data_start + data_bytes)


def _check_start(reader: FieldReader, label: str) -> None:
    start = reader.take(min(4, reader.remaining))
    if start != _MAGIC:
        raise ModelFileError(
            f"{label} is not a GGUF file.", "Models for llama.cpp come as .gguf files."
        )
    version = reader.u32()
    if version in _VERSIONS:
        return
    if int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS:
        raise ModelFileError(
            f"{label} is made for big-endian machines.", "Get the little-endian file."
        )
    raise ModelFileError(
        f"{label} has GGUF version {version}; versions 2 and 3 are supported.",
        "Get a newer file of the model." if version < 2 else "Update agent-tui.",
    )


def _data_bytes(reader: FieldReader, tensor_count: int) -> int:
    """How many bytes the described tensors take, counted from the start of the first one."""
    end = 0
    for _ in range(tensor_count):
        reader.key()
        dimensions = reader.u32()
        if dimensions > _MAX_DIMENSIONS:
            raise reader.damage_error(f"a tensor in it has {dimensions} dimensions")
        values = 1
        for _ in range(dimensions):
            values *= reader.u64()
        kind, offset = reader.u32(), reader.u64()
        per_block, block_bytes = _BLOCKS.get(kind, (max(values, 1), 1))  # new type: 1 byte or more
        end = max(end, offset + -(-values // per_block) * block_bytes)
    return end


def _info(
    fields: dict[str, FieldValue], tensor_count: int, size_bytes: int, expected_bytes: int
) -> GgufInfo:
    architecture = _text(fields, "general.architecture")
    template = _text(fields, "tokenizer.chat_template")
    window = _number(fields, f"{architecture}.context_length")
    return GgufInfo(
        size_bytes=size_bytes,
        expected_bytes=expected_bytes,
        use=_use_of(fields, architecture, tensor_count),
        architecture=architecture,
        name=_text(fields, "general.name"),
        licence=_text(fields, "general.license"),
        quantisation=_QUANTISATIONS.get(_number(fields, "general.file_type", -1), ""),
        window=window if 0 < window <= _MAX_WINDOW else None,
        has_chat_template=bool(template),
        knows_tools="tokenizer.chat_template.tool_use" in fields
        or re.search(r"\btools\b", template) is not None,
        part_number=_number(fields, "split.no"),
        part_count=max(_number(fields, "split.count"), 1),
    )


def _use_of(fields: dict[str, FieldValue], architecture: str, tensor_count: int) -> GgufUse:
    kind = _text(fields, "general.type")
    if architecture == "clip" or kind == "mmproj":
        return "projector"
    if kind == "adapter":
        return "adapter"
    if not tensor_count and not _number(fields, "split.count"):
        return "vocabulary"
    is_embedding = _EMBEDDING_ARCHITECTURE.search(architecture) is not None
    if is_embedding or _number(fields, f"{architecture}.pooling_type") > 0:
        return "embedding"
    return "chat"


def _text(fields: dict[str, FieldValue], key: str) -> str:
    value = fields.get(key)
    return value.strip() if isinstance(value, str) else ""


def _number(fields: dict[str, FieldValue], key: str, missing: int = 0) -> int:
    value = fields.get(key)
    return value if isinstance(value, int) else missing


def refuse_unusable(path: Path, info: GgufInfo) -> None:
    """Refuse a model that is incomplete or cannot hold a conversation.

    Raises:
        ModelFileError: It is of another kind, truncated, or not the first of several files.
    """
    match info.use:
        case "chat":
            pass
        case "embedding":
            raise ModelFileError(
                f"{path} is an embedding model and cannot chat.", "Choose a chat model."
            )
        case "projector":
            raise ModelFileError(
                f"{path} is the image part of a model.", "Name the model's own .gguf file."
            )
        case "adapter":
            raise ModelFileError(
                f"{path} is an adapter (LoRA), not a model.", "Merge it into its model first."
            )
        case "vocabulary":
            raise ModelFileError(f"{path} contains only a vocabulary.", "Choose the full model.")
    if info.part_number > 0 or _number_in_name(path) > 1:
        first = _part_path(path, 1)
        raise ModelFileError(
            f"{path} is part {max(info.part_number + 1, _number_in_name(path))} of a model.",
            f"Name the first part: {first.name}",
        )
    if not info.is_complete:
        raise ModelFileError(
            f"{path} is incomplete: {info.size_bytes:,} of at least {info.expected_bytes:,} bytes.",
            "Download or copy it again.",
        )
    for part in part_paths(path, info):
        if not part.is_file():
            raise ModelFileError(
                f"{path} is the first of {info.part_count} parts, and {part.name} is missing.",
                "Put all parts in one folder.",
            )


def part_paths(path: Path, info: GgufInfo) -> tuple[Path, ...]:
    """The files of the model whose first file is `path`."""
    if info.part_count == 1 or not _number_in_name(path):
        return (path,)
    return tuple(_part_path(path, number) for number in range(1, min(info.part_count, 999) + 1))


def _number_in_name(path: Path) -> int:
    """The 1 in ``name-00001-of-00003.gguf``; 0 for any other name."""
    found = re.search(r"-(\d{5})-of-\d{5}\.gguf$", path.name)
    return int(found[1]) if found else 0


def _part_path(path: Path, number: int) -> Path:
    name = re.sub(r"-\d{5}-of-(\d{5})\.gguf$", rf"-{number:05}-of-\1.gguf", path.name)
    return path.with_name(name)
