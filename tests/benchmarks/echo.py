"""Typing beside a streaming reply, and an idle screen: a long history beside an empty chat.

The program runs in a pseudo-terminal, its model is a server on loopback behind the real provider.
A key counts as shown when its letter has been written to the terminal.
"""

import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from agent_tui.messages import AssistantMessage, JsonObject, TextContent, ToolCall
from agent_tui.sessions.entries import CompactionEntry, Entry
from tests.support.openai_server import OpenAiServer, Reply
from tests.support.pty_program import PtyProgram
from tests.support.session_values import chain, entry, header, result, session_bytes, user

TOKENS_PER_S = 200
PIECE_TOKENS = 2
RARE_LETTERS = "жбцщюяёфдлзъэий"
"""Letters that nothing else on the screen holds."""

FIRST, LAST = "℥", "℞"
"""The first and the last token of the reply."""

MAX_ECHO_P99_MS = 50.0
MAX_IDLE_CPU = 0.01

_KEY_INTERVAL_S = 0.12
_SETTLED_CPU = 0.03
_COLUMNS, _ROWS = 120, 40


@dataclass(frozen=True)
class Echo:
    """One chat: echo times, CPU of the screen's process as a share of a core."""

    messages: int
    echo_p50_ms: float
    echo_p99_ms: float
    echo_max_ms: float
    tokens_per_s: float
    streaming_cpu: float
    idle_cpu: float
    rss_mb: float


def measure_echo(messages: int, keys: int, idle_s: float, turn_texts: tuple[str, str]) -> Echo:
    """Open a session of `messages` messages, leave it alone, then type while a reply streams.

    `turn_texts` are a reply and the output of a tool, as they come in each turn.
    """
    tokens = int((keys * (_KEY_INTERVAL_S + 0.05) + 10) * TOKENS_PER_S)
    with tempfile.TemporaryDirectory() as name, OpenAiServer() as server:
        folder = Path(name)
        server.play(Reply(text=_reply(tokens), delay_s=PIECE_TOKENS / TOKENS_PER_S))
        argv = [sys.executable, "-m", "agent_tui", "-m", "openai/test"]
        argv += ["--base-url", server.base_url]
        if messages:
            session = folder / "long.jsonl"
            session.write_bytes(_session(messages, folder, turn_texts))
            argv += ["-r", str(session)]
        environ = {**os.environ, **_own_folders(folder)}
        with PtyProgram(argv, environ=environ, cwd=folder, columns=_COLUMNS, rows=_ROWS) as program:
            program.wait_for("shell", 60)
            process = psutil.Process(program.process.pid)
            _settle(process)
            idle_cpu = _cpu_share(process, idle_s)
            return _typed(program, process, messages, keys, tokens, idle_cpu)


def _typed(
    program: PtyProgram,
    process: psutil.Process,
    messages: int,
    keys: int,
    tokens: int,
    idle_cpu: float,
) -> Echo:
    program.send("go\r")
    began = program.time_of(FIRST, 60)
    time.sleep(1.0)
    used, started = _cpu_s(process), time.perf_counter()
    echoes: list[float] = []
    for number in range(keys):
        letter, before = RARE_LETTERS[number % len(RARE_LETTERS)], program.piece_count
        sent = time.perf_counter()
        program.send(letter)
        echoes.append((program.time_of(letter, since_piece=before) - sent) * 1_000)
        if number % len(RARE_LETTERS) == len(RARE_LETTERS) - 1:
            program.send("\x15")  # an empty line again: a letter is drawn once
        time.sleep(_KEY_INTERVAL_S)
    streaming_cpu = (_cpu_s(process) - used) / (time.perf_counter() - started)
    ended = program.time_of(LAST, 120)
    echoes.sort()
    return Echo(
        messages,
        round(statistics.median(echoes), 1),
        round(echoes[int(len(echoes) * 0.99) - 1], 1),
        round(echoes[-1], 1),
        round(tokens / (ended - began)),
        round(streaming_cpu, 3),
        round(idle_cpu, 4),
        round(process.memory_info().rss / 1e6),
    )


def _reply(tokens: int) -> tuple[str, ...]:
    """Paragraphs, a list and code over and over, in pieces of `PIECE_TOKENS` words."""
    section = [f"word{number % 7} " for number in range(90)]
    section[0], section[40] = "\n\n## Part\n\n", ".\n\n"
    section[45] = section[53] = section[61] = "\n- **point** "
    section[68], section[76], section[84] = "\n\n```python\n", "\n    return `x`\n", "\n```\n\n"
    words = (section * (tokens // len(section) + 1))[:tokens]
    words[0], words[-1] = FIRST, LAST
    return tuple("".join(words[n : n + PIECE_TOKENS]) for n in range(0, tokens, PIECE_TOKENS))


def _session(messages: int, cwd: Path, turn_texts: tuple[str, str]) -> bytes:
    """A session of turns with two calls each, the old ones summarised so that a window holds it."""
    reply_text, output = turn_texts
    entries: list[Entry] = []
    for number in range(messages // 5):
        calls = (f"a{number}", f"b{number}")
        arguments: JsonObject = {"path": f"src/module_{number}.py"}
        asked = [ToolCall(id=call, name="read", arguments=arguments) for call in calls]
        text = TextContent(text=reply_text)
        entries += [
            entry(user(f"Why does the parser in module {number} lose the last line?")),
            entry(AssistantMessage(content=tuple(asked), provider="p", model="m", timestamp=2)),
            *(entry(result(call, output)) for call in calls),
            entry(AssistantMessage(content=(text,), provider="p", model="m", timestamp=2)),
        ]
    whole = chain(*entries)
    summary = CompactionEntry(summary="All of it was fixed.", first_kept_entry_id=whole[-10].id)
    return session_bytes(chain(*whole, summary), header(cwd=str(cwd)))


def _settle(process: psutil.Process) -> None:
    """Wait until what is done after the start has ended."""
    for _ in range(60):
        if _cpu_share(process, 1.0) < _SETTLED_CPU:
            return
    raise TimeoutError("the program never came to rest")


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _cpu_share(process: psutil.Process, seconds: float) -> float:
    used = _cpu_s(process)
    time.sleep(seconds)
    return (_cpu_s(process) - used) / seconds


def _own_folders(folder: Path) -> dict[str, str]:
    names = ("CONFIG", "DATA", "CACHE")
    folders = {f"AGENT_TUI_{name}_DIR": str(folder / name.lower()) for name in names}
    return {**folders, "OPENAI_API_KEY": "not-a-key"}


def echo_table(empty: Echo, long: Echo) -> str:
    """The two chats beside each other, and how many times the one the other is."""
    lines = [f"{'':<30}{'empty chat':>14}{f'{long.messages:,} messages':>18}{'ratio':>9}"]
    for title, name, unit in (
        ("echo of a key, median", "echo_p50_ms", "ms"),
        ("echo of a key, p99", "echo_p99_ms", "ms"),
        ("echo of a key, slowest", "echo_max_ms", "ms"),
        ("tokens a second", "tokens_per_s", ""),
        ("CPU while streaming", "streaming_cpu", "of a core"),
        ("CPU while idle", "idle_cpu", "of a core"),
        ("memory", "rss_mb", "MB"),
    ):
        before, after = float(getattr(empty, name)), float(getattr(long, name))
        ratio = f"{after / before:.2f}" if before else "-"
        lines.append(f"{title:<30}{before:>14}{after:>18}{ratio:>9} {unit}")
    return "\n".join(lines)
