"""Images made of the bytes their formats begin with."""

import struct
import zlib


def png(width: int = 8, height: int = 6) -> bytes:
    """A whole PNG of one colour."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x40\x80\xc0" * width) * height)
    chunks = ((b"IHDR", header), (b"IDAT", rows), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def jpeg(width: int, height: int) -> bytes:
    """The headers of a JPEG: JFIF, a comment, fill bytes, a progressive frame."""
    comment = b"\xff\xfe" + struct.pack(">H", 7) + b"\xff\xc0ab\0"
    frame = b"\xff\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + bytes(14) + comment + frame


def webp(kind: bytes, width: int, height: int) -> bytes:
    """The first chunk of a WebP in one of its three forms."""
    match kind:
        case b"VP8 ":
            body = bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height)
        case b"VP8L":
            body = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
        case _:
            sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
            body = bytes(4) + sizes
    return b"RIFF" + bytes(4) + b"WEBP" + kind + struct.pack("<I", len(body)) + body
