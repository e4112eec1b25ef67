"""How the chat holds up in a long session: echo of keys, event-loop gaps, CPU share, memory.

Run with ``python -m tests.benchmarks.transcript [--messages 5000] [--keys 200] [--json FILE]``.
First the whole program in a pseudo-terminal (`echo`): typing while a reply streams, and idle,
with a long session beside an empty chat. Then the chat alone. Pilot waits for widgets, so its
times say little; what a person feels is how long the event loop does not answer. A probe that
sleeps 5 ms measures that while things happen.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import TextArea

from agent_tui.ui.transcript.blocks import AssistantBlock, Block, ToolBlock, UserBlock
from agent_tui.ui.transcript.view import Transcript
from tests.benchmarks.echo import (
    MAX_ECHO_P99_MS,
    MAX_IDLE_CPU,
    TOKENS_PER_S,
    Echo,
    echo_table,
    measure_echo,
)

PROBE_S = 0.005
BLOCKS_PER_TURN = 4
MAX_GAP_MS = 100.0
MAX_STREAMING_CPU = 0.25

REPLY = """I looked at **{name}** and found why `parse_{n}()` drops the last line.

## What happens
1. The loop ends *before* the buffer is flushed
2. `flush()` is only called from `close()`, see [the docs](https://example.org/{n})
   - which the tests never do
   - and neither does the command line

```python
def parse_{n}(lines: list[str]) -> list[Block]:
    blocks = []
    for number, line in enumerate(lines):
        if line.startswith("#"):
            blocks.append(Block(number, line.strip(), kind="comment"))
    return blocks  # the rest is still in the buffer
```

| file | before | after |
|---|--:|--:|
| {name} | {n} | {m} |
| tests/test_{n}.py | 12 | 14 |

The fix is small, but it touches the hot path, so I measured it: the difference is within the \
noise of the machine. I will run the whole test suite next and then clean up the helper, which \
nobody needs any more.
"""

DIFF = """--- a/src/module_{n}.py
+++ b/src/module_{n}.py
@@ -{n},7 +{n},9 @@ def parse(lines):
     blocks = []
     for line in lines:
-        indent = 0
-        text = line
+        indent = len(line) - len(line.lstrip())
+        text = line.strip()
+        if not text:
+            continue
         blocks.append(Block(indent, text))
     return blocks
"""


@dataclass
class Measurement:
    """Gaps of the event loop during one kind of event, in milliseconds.

    `own_ms` is the most CPU time this process spent in one gap: on a busy machine the wall
    clock also counts what others did.
    """

    name: str
    max_ms: float
    p99_ms: float
    own_ms: float
    is_goal: bool = True


@dataclass
class Report:
    """Everything that was measured."""

    turns: int
    blocks: int = 0
    first_paint_ms: float = 0.0
    settled_s: float = 0.0
    rows: int = 0
    rss_mb: float = 0.0
    rss_before_mb: float = 0.0
    streaming_cpu: float = 0.0
    gaps: list[Measurement] = field(default_factory=list)
    echoes: list[Echo] = field(default_factory=list)


class ChatApp(App[None]):
    """The chat above a prompt, nothing else."""

    CSS = "Transcript { height: 1fr; } TextArea { height: 4; }"

    def compose(self) -> ComposeResult:
        yield Transcript()
        yield TextArea()


class Probe:
    """Sleeps a little again and again and notes how late it woke."""

    def __init__(self) -> None:
        self.gaps_ms: list[float] = []
        self.own_ms: list[float] = []

    async def run(self) -> None:
        while True:
            asleep_s, used_s = time.perf_counter(), time.process_time()
            await asyncio.sleep(PROBE_S)
            self.gaps_ms.append((time.perf_counter() - asleep_s - PROBE_S) * 1_000)
            self.own_ms.append((time.process_time() - used_s) * 1_000)


@asynccontextmanager
async def probing(report: Report, name: str, *, is_goal: bool = True):
    probe = Probe()
    task = asyncio.create_task(probe.run())
    yield
    await asyncio.sleep(0.05)
    task.cancel()
    gaps = sorted(probe.gaps_ms)
    p99 = gaps[int(len(gaps) * 0.99)]
    own = max(probe.own_ms)
    report.gaps.append(Measurement(name, round(gaps[-1], 1), round(p99, 1), round(own, 1), is_goal))


def conversation(turns: int) -> list[Block]:
    """A session of so many turns: a question, a Markdown reply, a command and an edit each."""
    blocks: list[Block] = []
    for n in range(turns):
        name = f"src/module_{n}.py"
        output = tool_output(name)
        blocks += [
            UserBlock(f"Why does the parser in {name} lose the last line? Please fix it."),
            AssistantBlock(REPLY.format(name=name, n=n, m=n + 2)),
            ToolBlock(f"r{n}", "bash", f"bash rg -n parse {name}", "ok", output, summary="exit 0"),
            ToolBlock(f"e{n}", "edit", f"edit {name}", "ok", diff=DIFF.format(n=n + 1)),
        ]
    return blocks


def tool_output(name: str) -> str:
    """What a search in a file prints."""
    return "\n".join(f"{name}:{line}: something happens here" for line in range(40))


async def settle(chat: Transcript) -> None:
    """Wait until drawing ahead has ended."""
    while not all(item.is_measured for item in chat._stack):
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)


async def measure_events(pilot: Pilot[None], chat: Transcript, report: Report) -> None:
    """What a person does in a long session, one after the other."""
    app = pilot.app
    size = app.size

    def post(event: events.Event) -> Callable[[], Awaitable[None]]:
        async def act() -> None:
            app.post_message(event)
            await asyncio.sleep(0.1)

        return act

    async def key(name: str) -> None:
        app.post_message(events.Key(name, name if len(name) == 1 else None))
        await asyncio.sleep(0.08)

    async def wheel(up: bool) -> None:
        kind = events.MouseScrollUp if up else events.MouseScrollDown
        chat.post_message(kind(chat, 5, 5, 0, -1 if up else 1, 0, False, False, False))
        await asyncio.sleep(0.03)

    async with probing(report, "key in the prompt"):
        app.query_one(TextArea).focus()
        for letter in "the quick brown fox" * 2:
            await key(letter)
    async with probing(report, "page up and down"):
        chat.focus()
        for name in ["pageup"] * 15 + ["pagedown"] * 5 + ["home", "pagedown", "end"]:
            await key(name)
    async with probing(report, "mouse wheel"):
        for number in range(60):
            await wheel(number < 40)
    async with probing(report, "focus of the terminal"):
        for _ in range(4):
            await post(events.AppBlur())()
            await post(events.AppFocus())()
    async with probing(report, "theme switch"):
        for theme in ("textual-light", "gruvbox", "ansi-dark", "textual-dark"):
            app.theme = theme
            await asyncio.sleep(0.5)
    async with probing(report, "resize", is_goal=False):
        for width in (100, 140, 80, size.width):
            await pilot.resize_terminal(width, size.height)
            await asyncio.sleep(0.5)
    await settle(chat)


async def measure_streaming(chat: Transcript, report: Report, seconds: float) -> None:
    """A reply at the end of the whole session."""
    words = (REPLY * 20).split(" ")
    process = psutil.Process()
    chat.follow_end()
    chat.start_reply()
    before, started_s = process.cpu_times(), time.perf_counter()
    async with probing(report, f"streaming {TOKENS_PER_S} tokens/s"):
        for number in range(int(seconds * TOKENS_PER_S)):
            chat.stream_text(words[number % len(words)] + " ")
            due_s = started_s + (number + 1) / TOKENS_PER_S
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
    elapsed_s, after = time.perf_counter() - started_s, process.cpu_times()
    chat.finish_reply()
    used_s = after.user - before.user + after.system - before.system
    report.streaming_cpu = round(used_s / elapsed_s, 3)


async def measure(turns: int, seconds: float) -> Report:
    report = Report(turns)
    app = ChatApp()
    async with app.run_test(size=(120, 40)) as pilot:
        chat = app.query_one(Transcript)
        await asyncio.sleep(0.2)
        report.rss_before_mb = round(psutil.Process().memory_info().rss / 1e6, 1)
        blocks = conversation(turns)
        painted = asyncio.Event()
        started_s = time.perf_counter()
        async with probing(report, "resume"):
            chat.load(blocks)
            chat.call_after_refresh(painted.set)
            await painted.wait()
            report.first_paint_ms = round((time.perf_counter() - started_s) * 1_000, 1)
        async with probing(report, "drawing ahead"):
            await settle(chat)
        report.settled_s = round(time.perf_counter() - started_s, 1)
        report.blocks, report.rows = len(blocks), chat.virtual_size.height
        await measure_events(pilot, chat, report)
        await measure_streaming(chat, report, seconds)
        report.rss_mb = round(psutil.Process().memory_info().rss / 1e6, 1)
    return report


def print_table(report: Report) -> None:
    print(f"{report.turns} turns, {report.blocks} blocks, {report.rows} rows")
    print(f"{'event-loop gap':<26}{'max ms':>9}{'p99 ms':>9}{'own CPU':>9}")
    for gap in report.gaps:
        print(f"{gap.name:<26}{gap.max_ms:>9}{gap.p99_ms:>9}{gap.own_ms:>9}")
    print(f"first paint of the resumed session  {report.first_paint_ms} ms")
    print(f"all heights known after             {report.settled_s} s")
    print(f"CPU while streaming                 {report.streaming_cpu:.1%} of a core")
    print(
        f"RSS                                 {report.rss_mb} MB (before: {report.rss_before_mb})"
    )


def main() -> int:
    """Measure, print, and say by the exit code whether the goals are met."""
    parser = argparse.ArgumentParser(description="Echo of keys and event-loop gaps of a long chat.")
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--keys", type=int, default=200, help="typed beside each stream")
    parser.add_argument(
        "--idle", type=float, default=20.0, help="seconds to leave the screen alone"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of streaming")
    parser.add_argument("--json", type=Path, help="write the report here, too")
    arguments = parser.parse_args()
    texts = (REPLY, tool_output("src/module.py"))
    empty, long = (
        measure_echo(messages, arguments.keys, arguments.idle, texts)
        for messages in (0, arguments.messages)
    )
    print(echo_table(empty, long), end="\n\n")
    report = asyncio.run(measure(arguments.messages // BLOCKS_PER_TURN, arguments.seconds))
    report.echoes = [empty, long]
    print_table(report)
    text = json.dumps(asdict(report), indent=1)
    if arguments.json:
        arguments.json.write_text(text)
    else:
        print(text)
    gaps_met = all(gap.own_ms <= MAX_GAP_MS for gap in report.gaps if gap.is_goal)
    chat_met = gaps_met and report.streaming_cpu <= MAX_STREAMING_CPU
    echo_met = long.echo_p99_ms <= MAX_ECHO_P99_MS and long.idle_cpu <= MAX_IDLE_CPU
    return int(not (chat_met and echo_met))


if __name__ == "__main__":
    sys.exit(main())
