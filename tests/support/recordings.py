"""Recorded streams of real providers, on machines that have them, and a server that plays one."""

import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.loopback import LoopbackServer, QuietHandler


@dataclass(frozen=True, slots=True)
class Recording:
    """One response as a provider sent it."""

    address: str
    content_type: str
    body: bytes

    @property
    def events(self) -> list[dict[str, Any]]:
        """The objects of its event stream; ``[DONE]`` is left out."""
        found: list[dict[str, Any]] = []
        for block in self.body.decode().replace("\r\n", "\n").split("\n\n"):
            data = [line[5:].strip() for line in block.split("\n") if line.startswith("data:")]
            if data and data != ["[DONE]"]:
                found.append(json.loads("\n".join(data)))
        return found


def recording(name: str) -> Recording:
    """A recording by its file name; skips the test where it is missing."""
    path = _folder() / name
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    read = json.loads(path.read_text(encoding="utf-8"))
    body = base64.b64decode(read["body_base64"])
    return Recording(read["uri"], read["content_type"], body)


def recordings(*parts: str) -> list[str]:
    """The file names with one of `parts` in the address of the recording, for parameters."""
    names = sorted(path.name for path in _folder().glob("*.json"))
    found = [name for name in names if any(part in recording(name).address for part in parts)]
    return found or ["none"]


def _folder() -> Path:
    default = Path(__file__).parents[2].parent / "shared" / "recordings"
    return Path(os.environ.get("AGENT_TUI_RECORDINGS") or default)


class RecordedServer(LoopbackServer):
    """Answers every request with the recording in `playing` and keeps the bodies; on loopback."""

    def __init__(self) -> None:
        self.playing: Recording | None = None
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                length = int(self.headers["content-length"])
                outer.bodies.append(json.loads(self.rfile.read(length)))
                assert outer.playing is not None
                self.send_response(200)
                self.send_header("content-type", outer.playing.content_type)
                self.end_headers()
                self.wfile.write(outer.playing.body)

        super().__init__(Handler)
