"""A program that stands in for the server process of a local model: same lines, same API.

``<model file>.loads`` beside the file says how to behave: ``{"loads": ["hold", "ready"]}``
names what each start does, the last one counting for all later ones.

``ready``    serves
``hold``     loads for ever
``refused``  logs what llama.cpp logs of a damaged file, and says no
``starved``  the same of too little memory
``missing``  finds no xllamacpp
``abort``    crashes over the file
``mute``     ends without a word
``babble``   says what is no answer

What a request is answered depends on its last message: ``hold`` gives a piece and then nothing,
``silent`` nothing at all, anything else a whole reply that names the model. Starts are noted in
``<model file>.starts``, requests in ``<model file>.requests``.
"""

import json
import os
import select
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn

WINDOW = 4_096
LOGGED = {
    "refused": "0.00.076.229 E llama_model_load: error loading model: tensor 'x' is not there",
    "starved": "0.00.674.896 E alloc: failed to allocate CPU buffer of size 92160000000",
    "abort": "llama-model.cpp:1356: GGML_ASSERT(n_layer > 0) failed",
}


class Handler(BaseHTTPRequestHandler):
    """The API, as much of it as is asked for."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != f"Bearer {self._own.key}":
            self.send_error(401, "Invalid API Key")
            return
        text = body["messages"][-1]["content"]
        self._own.note("requests", {"text": text, "max_tokens": body.get("max_tokens")})
        if text == "silent":
            self._wait_for_the_end(text)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self._send({"role": "assistant", "content": f"{self._own.alias} says "})
        if text == "hold":
            self._wait_for_the_end(text)
            return
        self._send({"content": "hello"})
        self._send({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    @property
    def _own(self) -> "Server":
        assert isinstance(self.server, Server)
        return self.server

    def _send(self, delta: dict[str, str], reason: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        self.wfile.write(b"data: " + json.dumps({**event, "choices": [choice]}).encode() + b"\n\n")
        self.wfile.flush()

    def _wait_for_the_end(self, text: str) -> None:
        select.select([self.connection], [], [])
        self._own.note("requests", {"left": text})


class Server(ThreadingHTTPServer):
    """On a port of this machine that the kernel chooses."""

    daemon_threads = True

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.key = order["key"]
        self.alias = order["alias"]
        self._path = order["path"]

    def note(self, kind: str, value: object) -> None:
        """Append a line to a file beside the model's."""
        note(self._path, kind, value)


def note(path: str, kind: str, value: object) -> None:
    """Append `value` as a line to ``<path>.<kind>``."""
    with Path(f"{path}.{kind}").open("a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")


def main() -> NoReturn:
    """Obey the order on stdin until stdin closes."""
    order = json.loads(sys.stdin.readline())
    starts = Path(order["path"] + ".starts")
    earlier = starts.read_text(encoding="utf-8").count("\n") if starts.exists() else 0
    loads = json.loads(Path(order["path"] + ".loads").read_text(encoding="utf-8"))["loads"]
    load = loads[min(earlier, len(loads) - 1)]
    environ = dict(os.environ)
    note(order["path"], "starts", {"pid": os.getpid(), "order": order, "environ": environ})
    if load in LOGGED:
        print(LOGGED[load], file=sys.stderr, flush=True)
    match load:
        case "ready":
            server = Server(order)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}/v1"
            answer = {"url": url, "window": WINDOW, "trained_window": 8_192}
            say({**answer, "knows_tools": False, "has_template": True})
        case "hold":
            threading.Thread(target=end_with_stdin, daemon=True).start()
            while True:
                signal.pause()
        case "refused" | "starved":
            say({"reason": "refused", "detail": "Failed to init server."})
        case "missing":
            say({"reason": "missing", "detail": "No module named 'xllamacpp'"})
        case "abort":
            os.abort()
        case "babble":
            print("loading, please wait", flush=True)
        case "mute":
            os._exit(3)
    end_with_stdin()


def say(answer: dict[str, Any]) -> None:
    """Print the one line."""
    print(json.dumps(answer), flush=True)


def end_with_stdin() -> NoReturn:
    """End when the parent does."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
