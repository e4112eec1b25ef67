"""Amazon's event streams, written: frames with headers, a payload and checksums."""

import json
import struct
import zlib
from typing import Any


def frame(kind: str, payload: dict[str, Any], message_type: str = "event") -> bytes:
    """One event, or one exception; all headers are texts."""
    name = ":event-type" if message_type == "event" else ":exception-type"
    given = {name: kind, ":content-type": "application/json", ":message-type": message_type}
    headers = b"".join(_header(*header) for header in given.items())
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    start = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return start + struct.pack(">I", zlib.crc32(start))


def _header(name: str, value: str) -> bytes:
    raw = value.encode()
    return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(raw)) + raw
