"""How quickly many and large sessions are listed, searched and opened.

    python -m tests.benchmarks.sessions [--sessions 10000] [--gigabytes 2] [--json FILE]

The sessions are made: sizes as uneven as real ones, texts from the source files of Python's own
library. Each figure stands beside what reading the same bytes costs. "Cold" is without our caches;
the system's own cache of the files is warm, since emptying it needs rights a test has not.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import psutil

from agent_tui.sessions.context import Context, build_context
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.benchmarks.session_files import SessionMaker

QUERIES = (
    "asyncio lock",
    "import",
    "deprec",
    "socket timeout err",
    "self.assertEqual",
    '"raise ValueError"',
    "os.path.join",
    "se",
    "nowhere_to_be_found",
    '"to be or not to be"',
)
"""Common and rare words, beginnings, names with signs in them, phrases that are there or not."""

BIG_BYTES = 100_000_000
SEARCH_RUNS = 10
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Figure:
    """One measurement; medians where it was taken several times.

    `cpu_s` is what it costs the processor: on a machine with other work the clock says more.
    """

    what: str
    seconds: float
    cpu_s: float
    slowest_20th_s: float | None = None
    note: str = ""


def once(what: str, action: Callable[[], ResultT], note: str = "") -> Figure:
    """How long `action` takes."""
    return several(what, action, 1, note)


def several(what: str, action: Callable[[], ResultT], runs: int, note: str = "") -> Figure:
    """How long `action` takes, `runs` times."""
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(runs):
        began, cpu_began = time.perf_counter(), time.process_time()
        action()
        walls.append(time.perf_counter() - began)
        cpus.append(time.process_time() - cpu_began)
    slowest = statistics.quantiles(walls, n=20)[-1] if runs > 1 else None
    return Figure(what, statistics.median(walls), statistics.median(cpus), slowest, note)


def measure_lists(store: SessionStore) -> Iterator[Figure]:
    """Pages and whole lists, without the cache and with it."""
    files = sorted(store.root.rglob("*.jsonl"))

    def first_page() -> None:
        with closing(store.pages(Path("/projects/number-3"))) as pages:
            next(pages)

    yield once("read all bytes", lambda: [file.read_bytes() for file in files])
    yield once("read them again", lambda: [file.read_bytes() for file in files])
    yield once("stat all files", lambda: [file.stat() for file in files])
    yield once("first page, cold", first_page)
    (store.root / "index.sqlite").unlink()
    yield once("whole list, cold", store.list)
    yield once("first page, warm", first_page)
    yield once("whole list, warm", store.list)
    with files[len(files) // 2].open("ab") as grown:
        grown.write(b'{"type":"label","id":"ffffffff","parentId":null,"label":"x"}\n')
    yield once("whole list, one session grown", store.list)


def measure_search(store: SessionStore) -> Iterator[Figure]:
    """Making the index, and searching with it."""
    usable: list[float] = []
    began = time.perf_counter()

    def note_time(_done: int, _all: int) -> None:
        usable.append(time.perf_counter() - began)

    made = once("make the search index", lambda: store.update_search(note_time))
    size = (store.root / "search.sqlite").stat().st_size
    total = sum(file.stat().st_size for file in store.root.rglob("*.jsonl"))
    note = f"{size / 1e6:.0f} MB, {size / total:.1%} of the files; first answers {usable[0]:.1f} s"
    yield replace(made, note=note)
    yield once("bring it up to date, nothing new", store.update_search)
    for query in QUERIES:
        found = len(store.search(query))
        yield several(f"search {query}", partial(store.search, query), SEARCH_RUNS, f"{found} hits")


def measure_opening(path: Path) -> Iterator[Figure]:
    """Opening one large session; in a process of its own, so that its memory can be told."""
    command = [sys.executable, "-m", "tests.benchmarks.sessions", "--open", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    yield from (Figure(**figure) for figure in json.loads(done.stdout))


def opening(path: Path) -> list[Figure]:
    """What `measure_opening` runs."""
    logs: list[SessionLog] = []
    contexts: list[Context] = []
    memory_before = _memory_mb()
    size = path.stat().st_size / 1e6
    figures = [
        once("read its bytes", path.read_bytes, f"{size:.0f} MB"),
        once("open it", lambda: logs.append(SessionLog.open(path, read_only=True))),
        once("its path", logs[0].path_entries, f"{len(logs[0].entries):,} entries"),
        once("its context", lambda: contexts.append(build_context(logs[0].path_entries()))),
    ]
    grown = f"{_memory_mb() - memory_before:.0f} MB of memory"
    took = sum(figure.seconds for figure in figures[1:])
    cpu = sum(figure.cpu_s for figure in figures[1:])
    return [*figures, Figure("open, path and context", took, cpu, note=grown)]


def _memory_mb() -> float:
    return psutil.Process().memory_info().rss / 1e6


def table(figures: list[Figure]) -> Iterator[str]:
    """The figures as a Markdown table."""
    yield "| what | s | CPU s | p95 s | |"
    yield "|---|---:|---:|---:|---|"
    for figure in figures:
        p95 = "" if figure.slowest_20th_s is None else f"{figure.slowest_20th_s:.3f}"
        times = f"{figure.seconds:.3f} | {figure.cpu_s:.3f} | {p95}"
        yield f"| {figure.what} | {times} | {figure.note} |"


def main(argv: list[str] | None = None) -> int:
    """Make sessions, measure, print a table and, with ``--json FILE``, write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--gigabytes", type=float, default=0.1)
    parser.add_argument("--folder", type=Path, help="make the sessions below this folder")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.open:
        print(json.dumps([asdict(figure) for figure in opening(arguments.open)]))
        return 0
    with ExitStack() as stack:
        scratch = Path(tempfile.mkdtemp(dir=arguments.folder))
        stack.callback(shutil.rmtree, scratch)
        maker = SessionMaker()
        maker.write_all(scratch / "many", arguments.sessions, int(arguments.gigabytes * 1e9))
        big = maker.write(scratch, Path("/big"), datetime(2026, 1, 1, tzinfo=UTC), BIG_BYTES)
        store = SessionStore(scratch / "many", "none")
        figures = [*measure_lists(store), *measure_search(store), *measure_opening(big)]
    print("\n".join(table(figures)))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in figures], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
