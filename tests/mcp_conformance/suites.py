"""The official suites for MCP clients: which scenarios they have, and running one with our client.

``AGENT_TUI_MCP_CONFORMANCE`` names a folder into which npm installed `package.json`, which has the
exact versions. They need node 22.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs/pages/mcp-conformance.md"
_NODE_MODULES = Path(os.environ.get("AGENT_TUI_MCP_CONFORMANCE", "/nowhere")) / "node_modules"
_CLIENT = shlex.join((sys.executable, "-m", "tests.mcp_conformance.client"))
_ALLOWED_MS = 60_000
_SCENARIO = re.compile(r"- (\S+) \[([^]]*)\]")


@dataclass(frozen=True, slots=True)
class Suite:
    """One release of the suite.

    Args:
        protocol: The version of MCP that it is run at.
        version: Its own.
    """

    protocol: str
    version: str

    @property
    def program(self) -> Path:
        """What node runs."""
        folder = _NODE_MODULES / f"conformance-{self.protocol}"
        return folder / "dist" / "index.js"

    def list_scenarios(self) -> tuple[str, ...]:
        """The scenarios for clients at its protocol, and the older and optional ones it has."""
        told = self._run("list")
        clients = told.stdout.partition("Client scenarios")[2].partition("\n\n")[0]
        is_latest = self is SUITES[-1]
        return tuple(
            name
            for name, versions in _SCENARIO.findall(clients)
            if not is_latest or self.protocol in versions
        )

    def try_scenario(self, name: str, results: Path) -> tuple[bool, str]:
        """Run one scenario; returns whether it passes, and what the suite says otherwise.

        Args:
            name: The scenario.
            results: An empty folder.
        """
        chosen = ("--spec-version", self.protocol) if self is SUITES[-1] else ()
        ended = self._run(
            *("client", "--command", _CLIENT, "--scenario", name, "--timeout", str(_ALLOWED_MS)),
            *("--output-dir", str(results), *chosen),
        )
        failed = [
            f"{check['id']}: {check.get('errorMessage') or check['description']}"
            for file in results.rglob("checks.json")
            for check in json.loads(file.read_text("utf-8"))
            if check["status"] in ("FAILURE", "WARNING")
        ]
        return ended.returncode == 0, "\n".join(failed) or ended.stdout[-2_000:]

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv = ("node", str(self.program), *arguments)
        return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


def _read_versions() -> Mapping[str, str]:
    given = json.loads((HERE / "package.json").read_text("utf-8"))["dependencies"]
    return {
        name.removeprefix("conformance-"): source.rpartition("@")[2]
        for name, source in cast("dict[str, str]", given).items()
    }


SUITES = tuple(Suite(protocol, version) for protocol, version in _read_versions().items())


def are_installed() -> bool:
    """Whether the suites can run here."""
    return shutil.which("node") is not None and all(suite.program.is_file() for suite in SUITES)


def read_excuses() -> Mapping[str, str]:
    """The scenarios that may fail, and why: ``may_fail.toml``."""
    return cast("dict[str, str]", tomllib.loads((HERE / "may_fail.toml").read_text("utf-8")))


def make_page(passing: Mapping[str, Mapping[str, bool]]) -> str:
    """The page of the documentation.

    Args:
        passing: For each protocol, whether each scenario passes.
    """
    excuses = read_excuses()
    names = list(dict.fromkeys(name for results in passing.values() for name in results))
    heads = [f"{suite.protocol} (suite {suite.version})" for suite in SUITES]
    lines = [
        *(HERE / "page_head.md").read_text("utf-8").splitlines(),
        f"| scenario | {' | '.join(heads)} | why it may fail |",
        f"| --- |{' --- |' * len(heads)} --- |",
    ]
    for name in names:
        cells = (_word(passing[suite.protocol].get(name)) for suite in SUITES)
        lines.append(f"| `{name}` | {' | '.join(cells)} | {excuses.get(name, '')} |")
    totals = (
        f"{sum(results.values())} of {len(results)}"
        for results in (passing[suite.protocol] for suite in SUITES)
    )
    lines.append(f"| passes | {' | '.join(totals)} | |")
    return "\n".join(lines) + "\n"


def _word(passes: bool | None) -> str:
    return "" if passes is None else "passes" if passes else "fails"


def read_page(text: str) -> Iterator[tuple[str, str, bool]]:
    """Each protocol, scenario and whether it passes, as `make_page` wrote them."""
    for name, *cells in re.findall(r"(?m)^\| `(\S+)` \| (\w*) \| (\w*) \|", text):
        for suite, cell in zip(SUITES, cells, strict=True):
            if cell:
                yield suite.protocol, name, cell == "passes"
