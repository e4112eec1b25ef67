"""A server on loopback that stands in for the services people sign in to."""

from collections.abc import Callable

from agent_tui.messages import JsonObject
from tests.support.loopback import LoopbackServer, QuietHandler


class AccountServer(LoopbackServer):
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

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self._answer(self.rfile.read(length).decode())

            def do_GET(self) -> None:
                self._answer("")

            def _answer(self, body: str) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                told.asked.append((self.path, headers, body))
                told.on_request(self.path)
                waiting = told.answers.get(self.path, [404])
                answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                self.answer_json(answer)

        super().__init__(Handler)

    @property
    def paths(self) -> list[str]:
        """Of the requests that came."""
        return [path for path, _, _ in self.asked]
