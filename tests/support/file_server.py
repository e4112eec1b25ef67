"""A real HTTP server on loopback that hands out files, and misbehaves as told.

with FileServer() as server:
    file = server.offer("/model.gguf", content, cuts=[1000])
    ...  # the first answer breaks off after 1000 bytes, the next ones do not
    assert file.ranges == ["", "bytes=1000-"]
"""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType

from tests.support.loopback import LoopbackServer, QuietHandler


@dataclass
class ServedFile:
    """A file, how it is handed out, and what was asked of it.

    `cuts`: after how many bytes each of the next answers breaks off. `stops_at`: the answer
    stops sending there until `go_on` is set. `content` may be exchanged between requests.
    """

    content: bytes
    etag: str = ""
    cuts: list[int] = field(default_factory=list[int])
    statuses: list[int] = field(default_factory=list[int])
    knows_ranges: bool = True
    tells_length: bool = True
    stops_at: int | None = None
    redirect_to: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    login: str = ""
    go_on: threading.Event = field(default_factory=threading.Event)
    reached_stop: threading.Event = field(default_factory=threading.Event)
    ranges: list[str] = field(default_factory=list[str])
    bytes_sent: list[int] = field(default_factory=list[int])


class FileServer(LoopbackServer):
    """Serves until the ``with`` block ends."""

    def __init__(self) -> None:
        self.files: dict[str, ServedFile] = {}
        files = self.files

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                served = files.get(self.path)
                if served is None:
                    self.send_error(404)
                else:
                    _answer(self, served)

        super().__init__(Handler)

    def offer(self, path: str, content: bytes, **manners: object) -> ServedFile:
        """Hand out `content` at `path`; `manners` are fields of `ServedFile`."""
        served = ServedFile(content, **manners)  # pyright: ignore[reportArgumentType]
        self.files[path] = served
        return served

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for served in self.files.values():
            served.go_on.set()
        super().__exit__(kind, error, trace)


def _answer(handler: BaseHTTPRequestHandler, served: ServedFile) -> None:
    asked = handler.headers.get("Range", "")
    served.ranges.append(asked)
    served.bytes_sent.append(0)
    if served.login and handler.headers.get("Authorization") != served.login:
        _send_head(handler, served, 401, {"Content-Length": "0"})
        return
    if served.redirect_to:
        _send_head(handler, served, 302, {"Location": served.redirect_to, "Content-Length": "0"})
        return
    if served.statuses:
        _send_head(handler, served, served.statuses.pop(0), {"Content-Length": "0"})
        return
    total, first, status = len(served.content), 0, 200
    condition = handler.headers.get("If-Range", "")
    if asked and served.knows_ranges and condition in ("", served.etag):
        first, status = int(asked.removeprefix("bytes=").partition("-")[0]), 206
        if first >= total:
            head = {"Content-Range": f"bytes */{total}", "Content-Length": "0"}
            _send_head(handler, served, 416, head)
            return
    head = {"Content-Length": str(total - first)} if served.tells_length else {}
    if status == 206:
        head["Content-Range"] = f"bytes {first}-{total - 1}/{total}"
    _send_head(handler, served, status, head)
    _send_body(handler, served, first)


def _send_head(
    handler: BaseHTTPRequestHandler, served: ServedFile, status: int, head: dict[str, str]
) -> None:
    handler.send_response(status)
    own = {"ETag": served.etag} if served.etag else {}
    for name, value in {**head, **own, **served.headers}.items():
        handler.send_header(name, value)
    if "Content-Length" not in head:
        handler.send_header("Connection", "close")
        handler.close_connection = True
    handler.end_headers()


def _send_body(handler: BaseHTTPRequestHandler, served: ServedFile, first: int) -> None:
    end = first + served.cuts.pop(0) if served.cuts else len(served.content)
    try:
        while first < end:
            stop = served.stops_at
            if stop is None or served.go_on.is_set():
                stop = end
            if first >= stop and not served.go_on.is_set():
                handler.wfile.flush()
                served.reached_stop.set()
                served.go_on.wait()
                stop = end
            block = served.content[first : min(first + 32_768, end, max(stop, first + 1))]
            served.bytes_sent[-1] += len(block)  # before whoever reads it can ask
            handler.wfile.write(block)
            first += len(block)
    except OSError:
        handler.close_connection = True
        return
    if end < len(served.content):
        handler.close_connection = True
