"""How soon the screen can be used, and what it costs, beside a bare Textual app.

    python -m tests.benchmarks.startup [--runs 5] [--peer "other-agent --flag"]...

Every program runs in a pseudo-terminal, in turn within each round, so that a slow moment of the
machine meets all of them. A round before them writes the bytecode, as an installation does. Figures
are medians; ratios are against the bare app. Memory is taken 4 s after the start. A last part
streams a reply of 100 tokens a second from a server on loopback through the real provider
and types while it does.
"""

import argparse
import json
import os
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.openai_server import OpenAiServer, Reply
from tests.support.pty_program import PtyProgram

BARE_APP = """
from textual.app import App
from textual.widgets import Input
class Bare(App):
    def compose(self):
        yield Input()
Bare().run()
"""
RARE_LETTERS = "жбцщюяёфдлзъэий"
"""Letters that no program here draws by itself; seeing one means that a key was echoed."""

MEMORY_AT_S = 4.0
IDLE_S = 3.0
IDLE_KEYS = 20
TYPED_KEYS = 60


@dataclass(frozen=True)
class Start:
    """One start. Times in milliseconds from the spawn, memory in MB, CPU as share of a core."""

    first_paint_ms: float
    first_echo_ms: float
    rss_mb: float
    all_rss_mb: float
    idle_cpu: float
    key_echo_ms: float


def measure_start(argv: list[str], environ: dict[str, str], cwd: Path) -> Start:
    """Start `argv`, type one letter until it is echoed, then leave it alone for a while."""
    with PtyProgram(argv, environ=environ, cwd=cwd) as program:
        paint: float | None = None
        echo: float | None = None
        deadline = program.started_at + 60
        while echo is None:
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{argv[0]} echoed nothing; it wrote {program.text[-400:]!r}")
            if paint is None and len(program.text.strip()) > 10:
                paint = time.perf_counter()
            program.send(RARE_LETTERS[0])
            try:
                echo = program.wait_for(RARE_LETTERS[0], 0.02)
            except TimeoutError:
                continue
        process = psutil.Process(program.process.pid)
        time.sleep(max(0.0, program.started_at + MEMORY_AT_S - time.perf_counter()))
        rss = process.memory_info().rss / 1e6
        family = [process, *process.children(recursive=True)]
        all_rss = sum(member.memory_info().rss for member in family) / 1e6
        time.sleep(4)  # let what warms up beside the screen come to an end
        before = process.cpu_times()
        time.sleep(IDLE_S)
        after = process.cpu_times()
        used = after.user + after.system - before.user - before.system
        keys = RARE_LETTERS[1:]
        echoes = [_echo_ms(program, keys[number % len(keys)]) for number in range(IDLE_KEYS)]
        return Start(
            first_paint_ms=((paint or echo) - program.started_at) * 1000,
            first_echo_ms=(echo - program.started_at) * 1000,
            rss_mb=rss,
            all_rss_mb=all_rss,
            idle_cpu=used / IDLE_S,
            key_echo_ms=statistics.median(echoes),
        )


def measure_streaming(argv: list[str], environ: dict[str, str], cwd: Path) -> dict[str, float]:
    """Type while 100 tokens a second arrive; echo times and the screen process's CPU share."""
    words = _reply_words(6_000)
    with OpenAiServer() as server:
        server.play(Reply(text=words, delay_s=0.01))
        line = [*argv, "-m", "openai/test", "--base-url", server.base_url, "go"]
        with PtyProgram(line, environ=environ, cwd=cwd) as program:
            program.wait_for("word3", 60)
            time.sleep(2)
            process = psutil.Process(program.process.pid)
            before, began = process.cpu_times(), time.perf_counter()
            echoes = [_echo_ms(program, RARE_LETTERS[i % 15]) for i in range(TYPED_KEYS)]
            after, took = process.cpu_times(), time.perf_counter() - began
    used = after.user + after.system - before.user - before.system
    echoes.sort()
    return {
        "echo_p50_ms": statistics.median(echoes),
        "echo_p95_ms": echoes[int(len(echoes) * 0.95) - 1],
        "echo_max_ms": echoes[-1],
        "cpu_share": used / took,
    }


def _reply_words(count: int) -> tuple[str, ...]:
    """A reply as models write them: paragraphs, a short list and some code, over and over."""
    section = [f"word{i % 7} " for i in range(90)]
    section[0] = "\n\n## Part\n\n"
    section[40] = ".\n\n"
    for bullet in (45, 53, 61):
        section[bullet] = "\n- **point** "
    section[68] = "\n\n```python\n"
    section[76] = "\n    return `x`\n"
    section[84] = "\n```\n\n"
    return tuple((section * (count // len(section) + 1))[:count])


def _echo_ms(program: PtyProgram, letter: str) -> float:
    time.sleep(0.15)
    before, began = program.piece_count, time.perf_counter()
    program.send(letter)
    return (program.time_of(letter, 5, since_piece=before) - began) * 1000


def main(argv: list[str] | None = None) -> int:
    """Measure, print a table and, with ``--json FILE``, write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peer", action="append", default=[], help="another program to time")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args(argv)
    python = sys.executable
    commands: dict[str, list[str]] = {
        "bare Textual app": [python, "-c", BARE_APP],
        "agent-tui": [python, "-m", "agent_tui", "-m", "openai/test"],
        **{peer: shlex.split(peer) for peer in arguments.peer},
    }
    starts: dict[str, list[Start]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, **_own_folders(Path(folder))}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(arguments.runs + 1):
            for name, command in commands.items():
                start = measure_start(command, environ, Path(folder))
                if number > 0:
                    starts[name].append(start)
        streaming = measure_streaming([python, "-m", "agent_tui"], environ, Path(folder))
    figures = _table(starts)
    print("\nstreaming 100 tokens/s: " + ", ".join(f"{k} {v:.2f}" for k, v in streaming.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps({"start": figures, "streaming": streaming}, indent=1))
    return 0


def _own_folders(folder: Path) -> dict[str, str]:
    names = ("CONFIG", "DATA", "CACHE")
    return {f"AGENT_TUI_{name}_DIR": str(folder / name.lower()) for name in names} | {
        "OPENAI_API_KEY": "not-a-key"
    }


def _table(starts: dict[str, list[Start]]) -> dict[str, dict[str, float]]:
    columns: dict[str, Callable[[Start], float]] = {
        "first paint ms": lambda s: s.first_paint_ms,
        "first echo ms": lambda s: s.first_echo_ms,
        "RSS MB": lambda s: s.rss_mb,
        "RSS with children MB": lambda s: s.all_rss_mb,
        "idle CPU %": lambda s: s.idle_cpu * 100,
        "key echo ms": lambda s: s.key_echo_ms,
    }
    bare = next(iter(starts))
    medians = {
        name: {title: statistics.median(map(get, runs)) for title, get in columns.items()}
        for name, runs in starts.items()
    }
    width = max(map(len, starts))
    print(" " * width, *(f"{title:>22}" for title in columns))
    for name, row in medians.items():
        cells = (
            f"{value:.1f} ({value / medians[bare][title]:.2f}x)"
            if medians[bare][title]
            else f"{value:.1f}"
            for title, value in row.items()
        )
        print(f"{name:{width}}", *(f"{cell:>22}" for cell in cells))
    return medians


if __name__ == "__main__":
    sys.exit(main())
