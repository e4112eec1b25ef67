"""A real HTTP server on loopback whose answers a test lays out beforehand.

with WebSite() as site:
    site.pages["/a"] = Answer(b"<p>Hi", {"content-type": "text/html"})
    ...  # ask f"{site.address}/a"
    assert site.asked == [("127.0.0.1:1234", "/a")]
"""

import ssl
from dataclasses import dataclass, field

from tests.support.loopback import LoopbackServer, QuietHandler


@dataclass(frozen=True)
class Answer:
    """What a path answers. `repeats`: so often the body is sent, without a length told."""

    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    status: int = 200
    repeats: int = 1


def html(text: str) -> Answer:
    return Answer(text.encode(), {"content-type": "text/html; charset=utf-8"})


def redirect(to: str) -> Answer:
    return Answer(b"moved", {"location": to}, status=302)


class WebSite(LoopbackServer):
    """Serves until the ``with`` block ends; `asked` has the host and path of each request."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.pages: dict[str, Answer] = {}
        self.asked: list[tuple[str, str]] = []
        site = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                site.asked.append((self.headers["host"], self.path))
                answer = site.pages.get(self.path, Answer(status=404))
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    for _ in range(answer.repeats):
                        self.wfile.write(answer.body)
                except OSError:
                    pass

        super().__init__(Handler, tls)
        self.address = self.url
