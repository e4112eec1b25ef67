"""Calls of MCP tools: which of them ask, and what of them fits the window."""

from datetime import date
from pathlib import Path

import pytest

from agent_tui.agent.prompt.fitted_prompt import FittedPrompt, PromptParts, fit_prompt
from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.messages import ToolSpec
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.rules import parse_rule
from agent_tui.permissions.verdict import Verdict
from agent_tui.tokens import ExactCounter
from agent_tui.tools.base import Intent
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.server_offer import ServerOffer
from tests.support.rows import each_row

TOOL = "mcp__github__make_issue"
OWN = default_toolbox()
COUNTER = ExactCounter()


def judged(
    mode: PermissionMode = "ask",
    *,
    allow: tuple[str, ...] = (),
    ask: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    is_interactive: bool = True,
) -> Verdict:
    permissions = PermissionEngine(
        mode=mode,
        rules=PermissionSettings(allow=allow, ask=ask, deny=deny),
        workspace=Path("/ws"),
        project_rules_file=Path("/nowhere/permissions.toml"),
        is_interactive=is_interactive,
    )
    return permissions.judge(TOOL, Intent(title="github: make_issue", access="outside"))


@pytest.mark.parametrize(
    ("mode", "decision"),
    [("plan", "deny"), ("ask", "ask"), ("accept-edits", "ask"), ("full", "ask")],
)
def test_without_a_rule_a_call_asks_in_every_mode_that_lets_things_happen(mode, decision):
    assert judged(mode).decision == decision


@each_row(
    "rule", [TOOL, f"{TOOL}(*)", "mcp__github__*", "mcp__github", "mcp__*", "mcp__github__make_*"]
)
@each_row("mode", ["ask", "accept-edits", "full"])
def test_a_rule_for_the_tool_or_its_server_allows_it(rule, mode):
    assert judged(mode, allow=(rule,)).decision == "allow"
    assert judged("plan", allow=(rule,)).decision == "deny"
    assert judged(mode, allow=(rule,), deny=(TOOL,)).decision == "deny"


@each_row(
    "rule",
    ["mcp__git__*", "mcp__git", "mcp__github__make", "mcp__github__make_issue(x)", "bash", "write"],
)
def test_a_rule_for_something_else_allows_nothing(rule):
    assert judged(allow=(rule,)).decision == "ask"


def test_the_longest_rule_wins_and_of_two_alike_the_careful_one():
    assert judged(allow=("mcp__github__*",), ask=(TOOL,)).decision == "ask"
    assert judged(allow=(TOOL,), ask=("mcp__*",)).decision == "allow"
    assert judged(allow=(TOOL,), ask=(TOOL,)).decision == "ask"
    assert judged(deny=("mcp__github",), allow=(TOOL,)).decision == "deny"


def test_always_remembers_just_this_tool():
    rule = judged().session_rule
    assert parse_rule(rule, "allow") == parse_rule(TOOL, "allow")


def test_without_a_person_nothing_is_assumed():
    assert judged(is_interactive=False).decision == "deny"
    assert judged(is_interactive=False, allow=("mcp__github__*",)).decision == "allow"


def fitted(window: int, count: int = 10) -> FittedPrompt:
    outside = tuple(
        ToolSpec(name=f"mcp__srv__{number}", description="word " * 100, parameters={})
        for number in range(count)
    )
    parts = PromptParts(
        Path("/ws"), date(2026, 1, 2), OWN.specs, OWN.short_specs, outside=ServerOffer(outside)
    )
    return fit_prompt(parts, window, COUNTER)


def test_small_windows_are_offered_no_tools_of_servers_and_large_ones_all():
    own = len(OWN.specs)
    assert len(fitted(4_096).tools) <= own
    assert len(fitted(0).tools) == len(fitted(200_000).tools) == own + 10
    part = fitted(10_500)
    assert own < len(part.tools) < own + 10
    assert "MCP tools left out" in part.note
    assert "MCP" not in fitted(200_000).note


def test_many_tools_of_servers_take_nothing_from_ours():
    with_many, without = fitted(16_000, 500), fitted(16_000, 0)
    assert with_many.system == without.system
    assert with_many.tools[: len(OWN.specs)] == without.tools
    assert COUNTER.count_tools(with_many.tools[len(OWN.specs) :]) <= 1_600
