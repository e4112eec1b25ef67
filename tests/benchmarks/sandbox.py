"""What the sandbox costs: commands through the bash tool, side by side within it and without.

Run with ``python -m tests.benchmarks.sandbox`` on an idle machine. The commands alternate, so that
what else the machine does meets all of them alike.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import patch

from agent_tui.config import Settings
from agent_tui.features.sandbox.sandbox import Sandbox
from agent_tui.features.sandbox.watch import ObeyedWatch
from agent_tui.tools.base import ToolContext
from agent_tui.tools.files.memory import FileMemory
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.registry import default_toolbox
from tests.support.sandbox import program_sandbox

_FILES_IN_FOLDER = 10
_WARM_UP = 5
WAYS = ("without", "bubblewrap", "landlock")


def make_project(folder: Path, files: int) -> None:
    """A git repository with so many committed files, ten in a folder."""
    for number in range(files):
        file = folder / f"part{number // 1_000}/of{number // _FILES_IN_FOLDER}/file{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"number = {number}\n")
    (folder / ".vscode").mkdir()
    (folder / ".vscode/settings.json").write_text("{}\n")
    (folder / "AGENTS.md").write_text("# Rules\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        names = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *names, *words], cwd=folder, check=True)


class Way:
    """One way to run a command, and the times it took in ms."""

    def __init__(self, name: str, sandbox: Sandbox, keeper: ProcessKeeper, context: ToolContext):
        self.name = name
        self.sandbox = sandbox
        self.times: list[float] = []
        self._toolbox = default_toolbox(keeper, sandbox=sandbox)
        self._context = context

    async def run(self, command: str) -> None:
        """Run `command` as the model does."""
        began = time.perf_counter()
        output = await self._toolbox.prepare("bash", {"command": command}, self._context).run()
        self.times.append((time.perf_counter() - began) * 1000)
        assert not output.is_error, output.for_model
        if output.find_changes is not None:  # beside the model's next request
            await output.find_changes()


@asynccontextmanager
async def ways(folder: Path) -> AsyncGenerator[list[Way], None]:
    """Without a wall, and within each kind that stands here."""
    keeper = ProcessKeeper()
    environ = {**os.environ, "HOME": str(folder / "home")}
    found: list[Way] = []
    for name in WAYS:
        context = ToolContext(
            cwd=folder / "home" / name,
            emit=lambda _text, _skipped=0: None,
            files=FileMemory(),
            output_dir=folder / "outputs",
            environ=environ,
            todos=[],
            default_timeout_s=60.0,
            only_reads=True,  # else each waits for a tick of the clock before it, and times leap
        )
        settings = Settings.model_validate({"sandbox": "off" if name == WAYS[0] else "on"})
        sandbox = program_sandbox(settings, environ, keeper=keeper)
        with patch(
            "agent_tui.features.sandbox.walls.backend_here", lambda *_, kind=name: (kind, "")
        ):
            sandbox.state(context.cwd)
        found.append(Way(name, sandbox, keeper, context))
    try:
        yield found
    finally:
        for way in found:
            await way.sandbox.close_walls()
        keeper.close()


async def measure(folder: Path, runs: int, command: str) -> list[Way]:
    """Run `command` so often in each way, by turns; the first time of each comes first."""
    async with ways(folder) as found:
        for way in found:
            await way.run(command)
        for _ in range(_WARM_UP):
            for way in found:
                await way.run(command)
                way.times.pop()
        for _ in range(runs):
            for way in found:
                await way.run(command)
        boxed = found[1].sandbox
        cwd = folder / "home" / found[1].name
        watch = boxed.watch(cwd)
        assert watch is not None
        await _print_parts(boxed, watch, cwd, runs)
        return found


async def _print_parts(sandbox: Sandbox, watch: ObeyedWatch, cwd: Path, runs: int) -> None:
    parts: dict[str, Callable[[], Awaitable[object]]] = {
        "note": watch.note,
        "wall made right": lambda: sandbox.keeper(cwd),
        "hold": watch.hold,
    }
    times: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(runs):
        for name, part in parts.items():
            began = time.perf_counter()
            await part()
            times[name].append((time.perf_counter() - began) * 1000)
    print("  ".join(f"{name} {statistics.median(each):.2f} ms" for name, each in times.items()))


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--command", default="true")
    parser.add_argument("--files", type=int, nargs="*", default=[10, 4_000])
    arguments = parser.parse_args(argv)
    for files in arguments.files:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            for way in WAYS:  # each has a project of its own: two in one would watch each other
                (folder / "home" / way).mkdir(parents=True)
                make_project(folder / "home" / way, files)
            own = {f"AGENT_TUI_{kind}_DIR": f"{folder}/{kind}" for kind in ("DATA", "CACHE")}
            with patch.dict(os.environ, {**own, "HOME": str(folder / "home")}):
                print(
                    f"\n{files:,} files, `{arguments.command}`, the middle half of {arguments.runs}"
                )
                _print(asyncio.run(measure(folder, arguments.runs, arguments.command)))
    return 0


def _print(found: list[Way]) -> None:
    usual = _middle(found[0].times[1:])
    for way in found:
        time_ms = _middle(way.times[1:])
        print(
            f"{way.name:11} {time_ms:6.2f} ms  {time_ms / usual:.2f}x  {time_ms - usual:+6.2f} ms"
            f"   the first {way.times[0]:7.1f} ms"
        )


def _middle(times: list[float]) -> float:
    """The mean of the middle half: a command waits for a tick of the clock, so a median leaps."""
    quarter = len(times) // 4
    return statistics.mean(sorted(times)[quarter : len(times) - quarter])


if __name__ == "__main__":
    sys.exit(main())
