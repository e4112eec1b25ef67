from pathlib import Path
from typing import get_args

import pytest

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.errors import ConfigError
from agent_tui.permissions.engine import PermissionEngine, Verdict
from agent_tui.permissions.rules import parse_rule
from agent_tui.tools.base import Intent


def engine(
    mode: PermissionMode = "ask",
    *,
    allow: tuple[str, ...] = (),
    ask: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    is_interactive: bool = True,
) -> PermissionEngine:
    return PermissionEngine(
        mode=mode,
        rules=PermissionSettings(allow=allow, ask=ask, deny=deny),
        workspace=Path("/ws"),
        project_rules_file=Path("/nowhere/permissions.toml"),
        is_interactive=is_interactive,
    )


def verdict(
    judging: PermissionEngine, host: str = "docs.python.org", *, leaves_sandbox: bool = False
) -> Verdict:
    intent = Intent("fetch", "network", host=host, leaves_sandbox=leaves_sandbox)
    return judging.judge("fetch", intent)


@pytest.mark.parametrize(
    ("mode", "decision"),
    [("plan", "deny"), ("ask", "ask"), ("accept-edits", "ask"), ("full", "allow")],
)
def test_the_mode_decides_where_no_rule_speaks(mode: PermissionMode, decision: str):
    assert verdict(engine(mode)).decision == decision


def test_where_a_sandbox_stands_full_and_plan_mode_reach_only_hosts_of_rules():
    judged = verdict(engine("full"), leaves_sandbox=True)
    assert judged.decision == "deny"
    assert "--allow 'fetch(domain:docs.python.org)'" in judged.why
    assert verdict(engine("plan"), leaves_sandbox=True).decision == "deny"
    for mode in get_args(PermissionMode):
        allowing = engine(mode, allow=("fetch(domain:docs.python.org)",))
        assert verdict(allowing, leaves_sandbox=True).decision == "allow"
    assert verdict(engine("plan", allow=("fetch(domain:docs.python.org)",))).decision == "deny"


def test_what_is_answered_for_the_session_holds_for_this_host_alone():
    judging = engine()
    assert verdict(judging).session_rule == "fetch(domain:docs.python.org)"
    judging.add_session_rule(verdict(judging).session_rule)
    assert verdict(judging).decision == "allow"
    assert verdict(judging, "www.docs.python.org").decision == "ask"
    assert verdict(judging, "evildocs.python.org").decision == "ask"


@pytest.mark.parametrize(
    ("rules", "host", "decision"),
    [
        ({"allow": ("fetch",)}, "any.test", "allow"),
        ({"allow": ("fetch(domain:*.python.org)",)}, "docs.python.org", "allow"),
        ({"allow": ("fetch(domain:*.Python.org)",)}, "python.org", "ask"),
        ({"allow": ("fetch(domain:*.python.org)",)}, "evilpython.org", "ask"),
        ({"allow": ("fetch",), "deny": ("fetch(domain:evil.test)",)}, "evil.test", "deny"),
        ({"allow": ("fetch",), "deny": ("fetch(domain:evil.test)",)}, "a.evil.test", "deny"),
        ({"allow": ("fetch",), "ask": ("fetch(domain:odd.test)",)}, "odd.test", "ask"),
        ({"deny": ("fetch",), "allow": ("fetch(domain:a.test)",)}, "a.test", "deny"),
        ({"allow": ("bash", "read", "write")}, "a.test", "ask"),
    ],
)
def test_rules_name_hosts_and_deny_wins(rules: dict, host: str, decision: str):
    assert verdict(engine(**rules), host).decision == decision


def test_plan_mode_asks_no_host_whatever_is_allowed():
    assert verdict(engine("plan", allow=("fetch",))).decision == "deny"


def test_where_nobody_can_be_asked_only_a_rule_allows():
    judged = verdict(engine(is_interactive=False))
    assert judged.decision == "deny"
    assert "this run cannot ask" in judged.why
    allowed = engine(allow=("fetch(domain:docs.python.org)",), is_interactive=False)
    assert verdict(allowed).decision == "allow"


def test_pages_are_fetched_beside_other_calls_that_only_read():
    assert verdict(engine("full")).only_reads


@pytest.mark.parametrize(
    "text", ["fetch(docs.python.org)", "fetch(https://a.test/*)", "fetch(domain:a.test/x)"]
)
def test_a_rule_that_names_no_host_is_refused(text: str):
    with pytest.raises(ConfigError, match="names no host"):
        parse_rule(text, "deny")
    assert engine(deny=(text,)).problems
