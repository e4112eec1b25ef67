"""A server on loopback that stands in for the services people sign in to."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from agent_tui.messages import JsonObject


class AccountServer:
    """The server; a context manager.

    Attributes:
        answers: By path, what it says one after the other, the last one for ever: a status, or
            an object with the status 200.
        asked: The path, the headers and the body of each request that came.
        on_request: Called with the path of each.
    """

    def __init__(self) -> None:
        self.answers: dict[str, list[JsonObject | int]] = {}
        self.asked: list[tuple[str, dict[str, str], str]] = []
        self.on_request: Callable[[str], object] = lambda _path: None
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self._answer(self.rfile.read(length).decode())

            def do_GET(self) -> None:
                self._answer("")

            def log_message(self, format: str, *args: object) -> None:
                pass

            def _answer(self, body: str) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                told.asked.append((self.path, headers, body))
                told.on_request(self.path)
                waiting = told.answers.get(self.path, [404])
                answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                said = b"" if isinstance(answer, int) else json.dumps(answer).encode()
                self.send_response(answer if isinstance(answer, int) else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def paths(self) -> list[str]:
        """Of the requests that came."""
        return [path for path, _, _ in self.asked]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
