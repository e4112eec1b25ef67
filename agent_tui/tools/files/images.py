"""Images in files: type and size, read from their first bytes without a library."""

import struct
import warnings
from base64 import b64encode
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from agent_tui.errors import UsageError
from agent_tui.regular_files import open_regular_file
from agent_tui.tools.files.opening import open_judged_file

MAX_IMAGE_BYTES = 3_750_000
"""Anthropic accepts 5 MB per image in base64; others accept more."""
MAX_IMAGE_SIDE = 2_000
"""Pixels. Anthropic refuses more in a request with many images, and no model uses it."""
_MAX_FILE_BYTES = 50_000_000
_SIGNATURE_BYTES = 64
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
_NO_FRAME = frozenset({0xC4, 0xC8, 0xCC})
"""Markers from C0 to CF that do not begin a frame (ITU T.81, table B.1)."""
_NO_LENGTH = frozenset({0x01, *range(0xD0, 0xDA)})


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image that was read: `data` in base64; width and height in pixels, 0 if unknown."""

    name: str
    mime_type: str
    data: str
    width: int
    height: int


def read_image(path: Path, *, follow_links: bool = True) -> ImageFile | None:
    """The image in `path`, scaled to what providers accept; None if it is not an image.

    Args:
        path: The file.
        follow_links: False reads nothing if the path has a link.

    Raises:
        UsageError: It is an image, but cannot be sent.
    """
    try:
        if not path.is_file():
            return None
        with (open_regular_file if follow_links else open_judged_file)(path) as file:
            data = file.read(_SIGNATURE_BYTES)
            if not image_type(data):
                return None
            data += file.read(_MAX_FILE_BYTES + 1)
    except (OSError, ValueError):
        return None
    fitted = fit_image(data)
    if not fitted:
        raise UsageError(
            f"{path.name} is an image of {len(data) / 1e6:,.1f} MB that cannot be reduced to the "
            f"{MAX_IMAGE_BYTES / 1e6:,.1f} MB that can be sent.",
            "Make it smaller first.",
        )
    width, height = image_size(fitted)
    encoded = b64encode(fitted).decode("ascii")
    return ImageFile(path.name, image_type(fitted), encoded, width, height)


def fit_image(data: bytes) -> bytes:
    """`data`, scaled down if it exceeds the providers' limits on side length or size.

    Returns:
        The same bytes if they fit, else a PNG or a JPEG; empty if that fails.
    """
    if len(data) <= MAX_IMAGE_BYTES and max(image_size(data)) <= MAX_IMAGE_SIDE:
        return data
    from PIL import Image, ImageOps  # 40 ms, and most sessions have no image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as opened:
                opened.draft("RGB", (MAX_IMAGE_SIDE, MAX_IMAGE_SIDE))
                image = ImageOps.exif_transpose(opened)
                image.thumbnail((MAX_IMAGE_SIDE, MAX_IMAGE_SIDE))
        is_drawn = not data.startswith(_JPEG)
        tries = [("PNG", 0)] if is_drawn else []
        for form, quality in (*tries, ("JPEG", 85), ("JPEG", 60), ("JPEG", 30)):
            written = BytesIO()
            kept = image if form == "PNG" else image.convert("RGB")
            kept.save(written, form, quality=quality)
            if written.tell() <= MAX_IMAGE_BYTES:
                return written.getvalue()
    except (OSError, ValueError, Warning, Image.DecompressionBombError):
        return b""
    return b""


def image_type(data: bytes) -> str:
    """The media type of an image, from its signature; empty for anything else."""
    if data.startswith(_PNG):
        return "image/png"
    if data.startswith(_JPEG):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def image_size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels; 0, 0 if the header is incomplete."""
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
    """The size in the first frame header (ITU T.81, B.2.2)."""
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
    """The size in the first chunk (RFC 9649)."""
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
