"""The numbers in the README, each measured by what it is about.

python -m tests.support.readme_figures           # lists each number, as it stands and as measured
python -m tests.support.readme_figures --write   # writes the measured numbers into the README
"""

import argparse
import asyncio
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from agent_tui.agent.prompt.fitted_prompt import full_prompt
from agent_tui.providers.keys import KEY_VARIABLES
from agent_tui.providers.wires.table import all_wires
from agent_tui.sessions.importers.formats import FORMATS
from tests.benchmarks import startup
from tests.features.why.line_history.test_recorded_sessions import CLAUDE, count_answered
from tests.sessions.test_killed import KILLS
from tests.support.escapes.promises import TOPICS
from tests.support.showcase import compacted_tokens

README = Path(__file__).parents[2] / "README.md"


@dataclass(frozen=True)
class Figure:
    """Numbers in one sentence of the README.

    Attributes:
        words: The sentence, with a group for each number.
        measure: Returns the numbers as they are written.
        is_exact: Whether it counts what is in the code; else it takes a while and may vary.
    """

    words: str
    measure: Callable[[], tuple[str, ...]]
    is_exact: bool = True

    def read(self, readme: str) -> tuple[str, ...]:
        """The numbers that the README has."""
        (found,) = re.finditer(self.words, readme)
        return found.groups()

    def written(self, readme: str, numbers: tuple[str, ...]) -> str:
        """The README with these numbers."""
        (found,) = re.finditer(self.words, readme)
        for group in reversed(range(len(numbers))):
            start, end = found.span(group + 1)
            readme = readme[:start] + numbers[group] + readme[end:]
        return readme


def measure_compaction() -> tuple[str, ...]:
    """Thousands of tokens before and after the compaction of the task in the moving picture."""
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENT_TUI_HOME", home)
        patch.setenv("HOME", home)
        before, after = asyncio.run(compacted_tokens(Path(home)))
    return str(round(before / 1000)), str(round(after / 1000))


def measure_start() -> tuple[str, ...]:
    """The time to the first paint, as a multiple of that of an empty Textual app."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "start.json"
        startup.main(["--runs", "7", "--json", str(file)])
        starts = json.loads(file.read_text())["start"]
    ours, bare = (starts[name]["first paint ms"] for name in ("agent-tui", "bare Textual app"))
    return (f"{ours / bare:.1f}",)


def measure_prompt() -> tuple[str, ...]:
    """The characters of the system prompt with a sandbox, to the nearest hundred."""
    packages = Path("/home/sam/.local/share/uv/tools/agent-tui-cli/lib/python3.13/site-packages")
    prompt = full_prompt(
        Path("/home/sam/project"),
        date(2026, 1, 2),
        has_sandbox=True,
        manual=packages / "agent_tui" / "docs",
    )
    return (f"{round(len(prompt), -2):,}",)


def count_probes() -> tuple[str, ...]:
    """How many probes of the sandbox there are, and how many each wall is tested to stop."""
    stopped = [
        sum(len(topic.probes) for topic in TOPICS if topic.promise(backend) in ("held", "watched"))
        for backend in ("bubblewrap", "landlock")
    ]
    return tuple(str(count) for count in (sum(len(topic.probes) for topic in TOPICS), *stopped))


def count_explained() -> tuple[str, ...]:
    """Of the lines that one call of a recorded session made, how many it is named for."""
    totals, answered = zip(*map(count_answered, CLAUDE), strict=True)
    return f"{sum(answered):,}", f"{sum(totals):,}"


FIGURES = (
    Figure(r"system prompt has about ([\d,]+) characters", measure_prompt),
    Figure(r"A (\d+)k-token task compacts to (\d+)k", measure_compaction, is_exact=False),
    Figure(r"compacted from (\d+)k to (\d+)k tokens", measure_compaction, is_exact=False),
    Figure(r"behind ([\d,]+) of ([\d,]+) recorded lines", count_explained, is_exact=False),
    Figure(r"([\d,]+) random kills", lambda: (f"{KILLS:,}",)),
    Figure(
        r"(\d+) provider protocols, keys for (\d+) providers",
        lambda: (str(len(all_wires())), str(len(KEY_VARIABLES))),
    ),
    Figure(
        r"takes ([\d.]+) times as long as in an empty Textual app", measure_start, is_exact=False
    ),
    Figure(r"Of (\d+) ways out tried, bubblewrap stops (\d+), Landlock (\d+)", count_probes),
    Figure(r"sessions from (\d+) other agents", lambda: (str(len(FORMATS)),)),
)


def main() -> None:
    """Measure every number; list or write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write them into the README")
    readme = README.read_text("utf-8")
    should_write = parser.parse_args().write
    for figure in FIGURES:
        numbers = figure.measure()
        print(f"{figure.words}: {figure.read(readme)}, measured {numbers}")
        readme = figure.written(readme, numbers)
    if should_write:
        README.write_text(readme, "utf-8")


if __name__ == "__main__":
    main()
