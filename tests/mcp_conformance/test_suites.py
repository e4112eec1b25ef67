"""The official suites for MCP clients, where node and they are there."""

from pathlib import Path

import pytest

from tests.mcp_conformance.client import arguments_for
from tests.mcp_conformance.suites import (
    PAGE,
    SUITES,
    Suite,
    are_installed,
    make_page,
    read_excuses,
    read_page,
)

_SCENARIOS = [
    pytest.param(suite, name, id=f"{suite.protocol}-{name}")
    for suite in (SUITES if are_installed() else ())
    for name in suite.list_scenarios()
]


@pytest.mark.interop
@pytest.mark.skipif(not are_installed(), reason="AGENT_TUI_MCP_CONFORMANCE names no suites")
@pytest.mark.parametrize(("suite", "name"), _SCENARIOS)
def test_a_scenario_passes_unless_it_may_fail(suite: Suite, name: str, tmp_path: Path):
    passes, why = suite.try_scenario(name, tmp_path)
    assert passes != (name in read_excuses()), why


def test_the_page_names_as_failing_what_may_fail_and_nothing_else():
    text = PAGE.read_text("utf-8")
    passing: dict[str, dict[str, bool]] = {suite.protocol: {} for suite in SUITES}
    for protocol, name, passes in read_page(text):
        passing[protocol][name] = passes
    assert all(passing.values())
    failing = {name for results in passing.values() for name, ok in results.items() if not ok}
    assert failing == set(read_excuses())
    assert text == make_page(passing), "run: python -m tests.mcp_conformance"


def test_only_what_a_tool_requires_is_given():
    schema = {
        "properties": {"n": {"type": "number"}, "s": {"type": "string"}, "left": {}},
        "required": ["n", "s"],
    }
    assert arguments_for(schema) == {"n": 3, "s": "text"}
