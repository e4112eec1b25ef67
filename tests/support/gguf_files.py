"""Small GGUF files, whole and broken."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Value = str | int | float | bool | Sequence[str] | Sequence[int]

CHAT_FIELDS: Mapping[str, Value] = {
    "general.architecture": "llama",
    "general.name": "Tiny Test",
    "general.license": "mit",
    "general.size_label": "1M",
    "general.file_type": 3,
    "llama.context_length": 2048,
    "tokenizer.ggml.tokens": ["<s>", "a", "bc"],
    "tokenizer.ggml.token_type": [1, 2, 3],
    "tokenizer.chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}",
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """One description: F32 (0) values."""

    name: str = "output.weight"
    shape: tuple[int, ...] = (8, 4)
    kind: int = 0
    offset: int = 0


def gguf_bytes(
    fields: Mapping[str, Value] = CHAT_FIELDS,
    tensors: Sequence[Tensor] = (Tensor(),),
    *,
    data_bytes: int = 128,
    version: int = 3,
    filler: bytes = b"\x01",
) -> bytes:
    """A file with these fields and tensors, and `data_bytes` of data after them."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(fields))
    for key, value in fields.items():
        out += text(key) + _typed(value)
    for tensor in tensors:
        out += text(tensor.name) + struct.pack("<I", len(tensor.shape))
        out += struct.pack(f"<{len(tensor.shape)}Q", *tensor.shape)
        out += struct.pack("<IQ", tensor.kind, tensor.offset)
    out += b"\0" * (-len(out) % 32)
    return out + (filler * (data_bytes // len(filler) + 1))[:data_bytes]


def text(value: str) -> bytes:
    """A string as the format has it."""
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _typed(value: Value) -> bytes:
    match value:
        case bool():
            return struct.pack("<IB", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + text(value)
        case _:
            items = list(value)
            if items and isinstance(items[0], str):
                head = struct.pack("<IIQ", 9, 8, len(items))
                return head + b"".join(text(str(item)) for item in items)
            numbers = [item for item in items if isinstance(item, int)]
            return struct.pack(f"<IIQ{len(numbers)}i", 9, 5, len(numbers), *numbers)
