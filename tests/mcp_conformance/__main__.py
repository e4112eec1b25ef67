"""Runs the official suites and writes what passes into the documentation.

``python -m tests.mcp_conformance``. The exit code is 1 if a scenario fails that `may_fail.toml`
does not name, or passes although it names it.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mcp_conformance.suites import PAGE, SUITES, are_installed, make_page, read_excuses


def main() -> int:
    """Run all scenarios, one after the other; returns the exit code."""
    if not are_installed():
        print("This needs node 22, and in AGENT_TUI_MCP_CONFORMANCE the folder of the suites.")
        return 2
    excuses = read_excuses()
    passing: dict[str, dict[str, bool]] = {}
    surprises = 0
    for suite in SUITES:
        results = passing.setdefault(suite.protocol, {})
        for name in suite.list_scenarios():
            with TemporaryDirectory() as folder:
                results[name], why = suite.try_scenario(name, Path(folder))
            is_surprise = results[name] == (name in excuses)
            surprises += is_surprise
            word = "passes" if results[name] else "fails"
            print(f"{suite.protocol} {name} {word}{' !' if is_surprise else ''}", flush=True)
            if is_surprise and not results[name]:
                print(why, flush=True)
    PAGE.write_text(make_page(passing), "utf-8")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
