"""How quickly ``@`` finds files in a large project, and whether typing stays smooth meanwhile.

Run with ``python -m tests.benchmarks.files [--files 100000] [--folder F] [--json FILE]``. It makes
a project of nested folders, ignored files, links in circles and odd names, and types into the
real prompt. What a person feels is how long the event loop does not answer: a probe that sleeps
5 ms measures that. On a busy machine the clock also counts what others did, so the CPU time this
program spent on the loop's thread stands beside it.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.types import CSSPathType

from agent_tui.commands.core.registry import CommandRegistry
from agent_tui.drafts.history import PromptHistory
from agent_tui.tools.files.walk import relative_files
from agent_tui.ui.prompt.completion import PromptSources
from agent_tui.ui.prompt.file_index import FileIndex
from agent_tui.ui.prompt.prompt import Prompt

PROBE_S = 0.005
WORDS = (
    *("alpha", "parser", "model", "view", "index", "http", "client", "server", "test", "core"),
    *("main", "app", "data", "cache", "user", "auth", "order", "item", "cart", "page"),
    *("form", "list", "tree", "node", "edge", "graph", "query", "token", "lexer", "utils"),
)
TYPED = (
    "parser_view",
    "src/par",
    "srcviewtok",
    "modle_cart",
    "größe",
    "zzqq",
    "a name with",
    ".github/w",
    "test_client_4",
)
FILES_A_FOLDER = 50


_UI = Path(__file__).parents[2] / "agent_tui" / "ui"


@dataclass(frozen=True)
class Row:
    """One line of the table, in milliseconds."""

    what: str
    count: int
    median_ms: float
    p99_ms: float
    gap_ms: float
    own_gap_ms: float
    cpu_ms: float


class PromptApp(App[None]):
    """The prompt by itself."""

    CSS_PATH: ClassVar[CSSPathType | None] = [_UI / "app.tcss", _UI / "chat.tcss"]

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.files = FileIndex(lambda: root, relative_files, time.monotonic)
        registry = CommandRegistry(())
        self.sources = PromptSources(registry, lambda _name: (), self.files, PromptHistory(None))
        self.prompt = Prompt()

    def compose(self) -> ComposeResult:
        """Only the prompt."""
        yield self.prompt

    def on_mount(self) -> None:
        """Type at once."""
        self.prompt.attach(self.sources)
        self.prompt.focus()


class Probe:
    """The longest time the event loop did not answer, and the most CPU time in such a gap."""

    def __init__(self) -> None:
        self.gap_ms = self.own_gap_ms = 0.0

    async def run(self) -> None:
        """Sleep and see how late it gets, until cancelled."""
        while True:
            before, own = time.perf_counter(), time.thread_time()
            await asyncio.sleep(PROBE_S)
            gap = (time.perf_counter() - before - PROBE_S) * 1e3
            self.gap_ms = max(self.gap_ms, gap)
            self.own_gap_ms = max(self.own_gap_ms, (time.thread_time() - own) * 1e3)


def make_project(root: Path, count: int) -> None:
    """`count` files in nested folders, and as much again that is ignored."""
    rng = random.Random(4)
    for number in range(count // FILES_A_FOLDER):
        top = rng.choice(("src", "lib", "tests", "docs", "packages"))
        folder = root / top / f"{rng.choice(WORDS)}_{number % 60}" / f"{rng.choice(WORDS)}_{number}"
        folder.mkdir(parents=True)
        names = [f"{rng.choice(WORDS)}_{rng.choice(WORDS)}_{i}.py" for i in range(FILES_A_FOLDER)]
        names[:3] = [f"a name with blanks {number}.txt", f"größe_{number}_日本.py", "ignored.log"]
        for name in names:
            (folder / name).touch()
        if number % 20 == 0:
            (folder / ".gitignore").write_text("*.tmp\nbuild/\n!kept.tmp\n", encoding="utf-8")
    (root / ".gitignore").write_text("node_modules/\n*.log\n", encoding="utf-8")
    for number in range(count // FILES_A_FOLDER // 10):
        package = root / "node_modules" / f"p{number}"
        package.mkdir(parents=True)
        for module in range(FILES_A_FOLDER):
            (package / f"m{module}.js").touch()
    (root / ".github" / "workflows").mkdir(parents=True)
    (root / ".github" / "workflows" / "ci.yml").touch()
    (root / "loop").symlink_to(root)
    (root / os.fsdecode(b"bad\xff\xfename.py")).touch()


async def measure(what: str, steps: list[Callable[[], Awaitable[None]]]) -> Row:
    """The time of each step, and what the event loop did meanwhile."""
    probe, times = Probe(), list[float]()
    running = asyncio.create_task(probe.run())
    await asyncio.sleep(PROBE_S * 4)
    probe.gap_ms = probe.own_gap_ms = 0.0
    cpu_s = time.process_time()
    for step in steps:
        before = time.perf_counter()
        await step()
        times.append((time.perf_counter() - before) * 1e3)
    cpu_ms = (time.process_time() - cpu_s) * 1e3 / len(steps)
    running.cancel()
    times.sort()
    at = [times[min(int(len(times) * part), len(times) - 1)] for part in (0.5, 0.99)]
    row = Row(what, len(times), at[0], at[1], probe.gap_ms, probe.own_gap_ms, cpu_ms)
    print(
        f"| {row.what} | {row.count} | {row.median_ms:.1f} | {row.p99_ms:.1f} "
        f"| {row.cpu_ms:.1f} | {row.gap_ms:.1f} | {row.own_gap_ms:.1f} |",
        file=sys.__stdout__,
        flush=True,
    )
    return row


async def benchmark(root: Path) -> list[Row]:
    """Everything that is measured, in order."""

    async def walk() -> None:
        await asyncio.to_thread(lambda: sum(len(files) for _, _, files in os.walk(root)))

    app = PromptApp(root)
    async with app.run_test(size=(120, 40)) as pilot:
        prompt = app.prompt

        async def write(text: str) -> None:
            """Until the menu answers what stands there."""
            prompt.area.insert(text)
            while prompt.is_behind:
                await asyncio.sleep(0.001)

        async def first() -> None:
            await write("@")
            await app.files.settle()
            while prompt.is_behind:
                await asyncio.sleep(0.001)

        rows = [await measure("os.walk, all files", [walk])]
        rows.append(await measure("first list", [first]))
        await pilot.pause()

        def key(letter: str) -> Callable[[], Awaitable[None]]:
            return lambda: write(letter)

        keys: list[Callable[[], Awaitable[None]]] = []
        for text in TYPED:
            prompt.clear()
            letters = f'@"{text}' if " " in text else f"@{text}"
            row = await measure(text, [key(letter) for letter in letters])
            rows.append(row)
            keys += [key(letter) for letter in letters]
        (root / "brand_new_file.py").touch()
        await asyncio.sleep(5)
        prompt.clear()

        async def see_new_file() -> None:
            await write("@brand_new_file")
            for _ in range(10_000):
                if any("brand_new_file" in item.label for item in prompt.menu.items):
                    return
                await asyncio.sleep(0.001)
            raise SystemExit("A new file was not offered.")

        rows.append(await measure("a new file is offered", [see_new_file]))
    return rows


def main() -> None:
    """Make the project, measure, print the table."""
    parser = argparse.ArgumentParser(description="Time the completion of files.")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="a project to search instead of one made here")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = arguments.folder or Path(scratch)
        if arguments.folder is None:
            make_project(root, arguments.files)
        print("| what | keys | median ms | p99 ms | CPU ms each | longest gap ms | of it own CPU |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        rows = asyncio.run(benchmark(root))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows]), encoding="utf-8")


if __name__ == "__main__":
    main()
