"""Images in files: which kind, how large, read from their first bytes without a library."""

import struct
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import UsageError

MAX_IMAGE_BYTES = 5_000_000
"""Anthropic's cap on one image; others allow more."""
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
_NO_FRAME = frozenset({0xC4, 0xC8, 0xCC})
"""Markers among C0 to CF that begin no frame (ITU T.81, table B.1)."""
_NO_LENGTH = frozenset({0x01, *range(0xD0, 0xDA)})


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image that was read: `data` in base64; width and height in pixels, 0 if not known."""

    name: str
    mime_type: str
    data: str
    width: int
    height: int


def read_image(path: Path) -> ImageFile | None:
    """The image in `path`, None if there is none.

    Raises:
        UsageError: It is one, but larger than can be sent.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            data = file.read(MAX_IMAGE_BYTES + 1)
        size_bytes = path.stat().st_size
    except (OSError, ValueError):
        return None
    mime_type = image_type(data)
    if not mime_type:
        return None
    if len(data) > MAX_IMAGE_BYTES:
        raise UsageError(
            f"{path.name} is an image of {size_bytes / 1e6:,.1f} MB; "
            f"at most {MAX_IMAGE_BYTES // 1_000_000} MB can be sent.",
            "Make it smaller first.",
        )
    width, height = image_size(data)
    return ImageFile(path.name, mime_type, b64encode(data).decode("ascii"), width, height)


def image_type(data: bytes) -> str:
    """The media type of an image by its signature; empty for anything else."""
    if data.startswith(_PNG):
        return "image/png"
    if data.startswith(_JPEG):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def image_size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels; 0, 0 where the header is not whole."""
    try:
        match image_type(data):
            case "image/png":
                return _two_numbers(">II", data, 16)
            case "image/gif":
                return _two_numbers("<HH", data, 6)
            case "image/jpeg":
                return _jpeg_size(data)
            case "image/webp":
                return _webp_size(data)
            case _:
                return 0, 0
    except struct.error:
        return 0, 0


def _two_numbers(form: str, data: bytes, offset: int) -> tuple[int, int]:
    first, second = struct.unpack_from(form, data, offset)
    return int(first), int(second)


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """From the first frame header (ITU T.81, B.2.2)."""
    place = 2
    while place + 4 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF or marker in _NO_LENGTH:
            place += 1 if marker == 0xFF else 2
            continue
        if 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            height, width = _two_numbers(">HH", data, place + 5)
            return width, height
        (length,) = struct.unpack_from(">H", data, place + 2)
        place += 2 + max(int(length), 2)
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    """From the first chunk (RFC 9649)."""
    match data[12:16]:
        case b"VP8 ":
            width, height = _two_numbers("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            sizes = data[24:30].ljust(6, b"\0")
            width = int.from_bytes(sizes[:3], "little") + 1
            return width, int.from_bytes(sizes[3:], "little") + 1
        case _:
            return 0, 0
