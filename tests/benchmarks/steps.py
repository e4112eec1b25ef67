"""What one step costs: a request to a server that answers at once, and one instant tool call.

    python -m tests.benchmarks.steps [--steps 200] [--files 40000] [--pi PROGRAM] [--json FILE]

Every program does the same unattended task over the same loopback server: `--steps` replies, each
with one call (``bash`` of ``true``, or ``read`` of a small file), in a folder without git and in a
repository of `--files` files. A step is the time from one request to the next, so that starting a
program does not count. Beside agent-tui there are a bare loop (this file, no more than must be)
and, with `--pi`, the ``pi`` of npm's ``@earendil-works/pi-coding-agent``. They run by turns,
`--rounds` times; figures are of the middle round, ratios are against the bare loop.

"first" and "last" are medians over the first and the last 40 steps: what a long conversation
adds. MB are the resident sizes of the program's largest two processes near the end.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil

_EDGE = 40
_TOOLS = ("bash", "read")
_MODEL = "bench-model"


class InstantServer:
    """Answers each streamed chat request at once: one call, and text when `steps` are done."""

    def __init__(self, steps: int, tool: str) -> None:
        self._steps = steps
        self._tool = tool
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.arrivals: list[float] = []
        self.port = 0
        self.on_last: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_error: object) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @property
    def base_url(self) -> str:
        """What ``--base-url`` takes."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def steps_ms(self) -> list[float]:
        """Milliseconds from each request to the next."""
        pairs = zip(self.arrivals, self.arrivals[1:], strict=False)
        return [(after - before) * 1000 for before, after in pairs]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                if b"content-length:" in head:
                    length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                    body = await reader.readexactly(length)
                else:
                    body = b""
                is_chat = b"/chat/completions" in head.split(b"\r\n")[0] and _MODEL.encode() in body
                writer.write(self._answer() if is_chat else _NOT_FOUND)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self) -> bytes:
        self.arrivals.append(time.perf_counter())
        number = len(self.arrivals)
        delta: dict[str, Any] = {"role": "assistant", "content": "done"}
        if number <= self._steps:
            arguments = _arguments(self._tool, number)
            function = {"name": self._tool, "arguments": json.dumps(arguments)}
            call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
            delta = {"role": "assistant", "content": None, "tool_calls": [call]}
        else:
            self.on_last()
        reason = "tool_calls" if "tool_calls" in delta else "stop"
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        chunks = [_chunk([_choice(delta, None)]), _chunk([_choice({}, reason)])]
        chunks.append({**_chunk([]), "usage": usage})
        events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        body = (events + "data: [DONE]\n\n").encode()
        return (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            + f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )


_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"


def _arguments(tool: str, number: int) -> dict[str, str]:
    """Of call `number`; no two are alike, as an agent may stop a model that repeats itself."""
    return {"command": f"true # {number}"} if tool == "bash" else {"path": f"small/{number}.txt"}


def _chunk(choices: list[dict[str, Any]]) -> dict[str, Any]:
    kind = "chat.completion.chunk"
    return {"id": "c", "object": kind, "created": 1, "model": _MODEL, "choices": choices}


def _choice(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": reason}


def bare_loop(base_url: str) -> None:
    """The least that an agent can be: ask, run, ask."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    while True:
        body = {"model": _MODEL, "messages": messages, "stream": True}
        request = urllib.request.Request(
            f"{base_url}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:
            lines = [line[6:] for line in response if line.startswith(b"data: {")]
        delta = json.loads(lines[0])["choices"][0]["delta"]
        messages.append(delta)
        calls = delta.get("tool_calls", [])
        if not calls:
            return
        for call in calls:
            given = json.loads(call["function"]["arguments"])
            if call["function"]["name"] == "bash":
                ran = subprocess.run(["bash", "-c", given["command"]], capture_output=True)
                text = ran.stdout.decode()
            else:
                text = Path(given["path"]).read_text(encoding="utf-8")
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})


@dataclass(frozen=True)
class Steps:
    """The price of a step in milliseconds, and the sizes of two processes in MB."""

    median_ms: float
    first_ms: float
    last_ms: float
    megabytes: tuple[int, ...]


def measure(argv: list[str], cwd: Path, environ: dict[str, str], steps: int, tool: str) -> Steps:
    """Have a program do the task in `cwd`; ``{url}`` in `argv` and `environ` is the server's."""
    with InstantServer(steps, tool) as server:
        sizes: list[int] = []
        line = [word.replace("{url}", server.base_url) for word in argv]
        if agent_dir := environ.get("PI_CODING_AGENT_DIR"):
            _write_pi_models(Path(agent_dir), server.base_url)
        program = subprocess.Popen(
            line, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip

        def weigh() -> None:
            root = psutil.Process(program.pid)
            family = [root, *root.children(recursive=True)]
            sizes.extend(sorted((p.memory_info().rss // 2**20 for p in family), reverse=True)[:2])

        server.on_last = weigh
        said, _ = program.communicate(timeout=600)
        if len(server.arrivals) != steps + 1:
            raise RuntimeError(f"{argv[0]} made {len(server.arrivals)} requests: {said[-800:]!r}")
        taken = server.steps_ms
    edge = min(_EDGE, len(taken))
    return Steps(
        statistics.median(taken),
        statistics.median(taken[:edge]),
        statistics.median(taken[-edge:]),
        tuple(sizes),
    )


def _middle(rounds: list[Steps]) -> Steps:
    """The round whose median is in the middle."""
    return sorted(rounds, key=lambda steps: steps.median_ms)[len(rounds) // 2]


def _write_pi_models(agent_dir: Path, base_url: str) -> None:
    agent_dir.mkdir(exist_ok=True)
    provider = {
        "baseUrl": base_url,
        "api": "openai-completions",
        "apiKey": "none",
        "models": [{"id": _MODEL}],
    }
    (agent_dir / "models.json").write_text(json.dumps({"providers": {"bench": provider}}))


def _make_repository(folder: Path, files: int) -> None:
    """Make a git repository of `folder`, with `files` more committed files in folders of 100."""
    for number in range(files):
        if number % 100 == 0:
            (folder / f"d{number // 100}").mkdir()
        (folder / f"d{number // 100}" / f"f{number}.txt").write_text(f"{number}\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "all")):
        who = ("-c", "user.name=Bench", "-c", "user.email=bench@example.com")
        subprocess.run(["git", *who, *words], cwd=folder, check=True)


def main(argv: list[str] | None = None) -> int:
    """Measure, print a table and, with ``--json FILE``, write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=40_000, help="0: no repository")
    parser.add_argument("--pi", default="", help="the pi program")
    parser.add_argument("--tool", choices=_TOOLS, action="append")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--bare", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.bare:
        bare_loop(arguments.bare)
        return 0
    ours = [sys.executable, "-m", "agent_tui", "--base-url", "{url}", "-m", _MODEL]
    ours += ["--permission-mode", "full", "-p", "go"]
    programs = {
        "bare loop": [sys.executable, __file__, "--bare", "{url}"],
        "no sandbox": ["env", "AGENT_TUI_SANDBOX=off", *ours],
        "agent-tui": ours,
    }
    if arguments.pi:
        programs["pi"] = [arguments.pi, "--model", f"bench/{_MODEL}", "-p", "go"]
    figures: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        environ = {**os.environ, **_own_folders(folder)}
        places = {"no repository": folder / "plain"}
        if arguments.files:
            places[f"{arguments.files:,} files"] = folder / "many"
        for place, cwd in places.items():
            (cwd / "small").mkdir(parents=True)
            for number in range(1, arguments.steps + 1):
                (cwd / "small" / f"{number}.txt").write_text("one\ntwo\nthree\n")
            if cwd.name == "many":
                _make_repository(cwd, arguments.files)
            for tool in arguments.tool or _TOOLS:
                rounds: dict[str, list[Steps]] = {name: [] for name in programs}
                for _ in range(arguments.rounds):
                    for name, line in programs.items():
                        rounds[name].append(measure(line, cwd, environ, arguments.steps, tool))
                found_of = {name: _middle(each) for name, each in rounds.items()}
                bare_ms = found_of["bare loop"].median_ms
                for name, found in found_of.items():
                    figures[f"{place}, {tool}, {name}"] = vars(found)
                    print(
                        f"{place:14} {tool:5} {name:10} {found.median_ms:7.1f} ms a step "
                        f"({found.median_ms / bare_ms:.2f}x), first "
                        f"{found.first_ms:6.1f}, last {found.last_ms:6.1f}; MB {found.megabytes}",
                        flush=True,
                    )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))
    return 0


def _own_folders(folder: Path) -> dict[str, str]:
    names = ("CONFIG", "DATA", "CACHE")
    return {f"AGENT_TUI_{name}_DIR": str(folder / name.lower()) for name in names} | {
        "PI_CODING_AGENT_DIR": str(folder / "pi"),
        "PI_OFFLINE": "1",
    }


if __name__ == "__main__":
    sys.exit(main())
