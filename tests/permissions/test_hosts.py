from pathlib import Path
from typing import get_args

import pytest

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.errors import ConfigError
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.rules import parse_rule, rules_for_names
from agent_tui.permissions.verdict import Verdict
from agent_tui.tools.base import Intent
from tests.support.rows import each_row


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


def test_what_is_answered_for_the_session_holds_for_this_host_alone():
    judging = engine()
    assert verdict(judging).session_rule == "fetch(domain:docs.python.org)"
    judging.book.add_session_rule(verdict(judging).session_rule)
    assert verdict(judging).decision == "allow"
    assert verdict(judging, "www.docs.python.org").decision == "ask"
    assert verdict(judging, "evildocs.python.org").decision == "ask"


@each_row(
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


def test_plan_mode_asks_only_hosts_that_a_rule_allows():
    assert verdict(engine("plan", allow=("fetch",))).decision == "allow"
    assert verdict(engine("plan", ask=("fetch",))).decision == "deny"
    assert verdict(engine("plan", allow=("fetch",), deny=("fetch",))).decision == "deny"


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
    assert engine(deny=(text,)).book.problems


@pytest.mark.parametrize(
    ("mode", "decisions"),
    [
        ("plan", ("deny", "allow", "deny")),
        ("ask", ("ask", "allow", "ask")),
        ("accept-edits", ("ask", "allow", "ask")),
        ("full", ("deny", "allow", "ask")),
    ],
)
def test_the_mode_decides_on_connections_of_commands_where_no_rule_allows(
    mode: PermissionMode, decisions: tuple[str, ...]
):
    judging = engine(mode, allow=("fetch(bundle:pypi)",), ask=("fetch(domain:asks.test)",))
    hosts = ("a.test", "files.pythonhosted.org", "asks.test")
    assert tuple(judging.judge_host(host).decision for host in hosts) == decisions
    nobody = engine(mode, is_interactive=False, ask=("fetch(domain:asks.test)",))
    assert {nobody.judge_host(host).decision for host in ("a.test", "asks.test")} == {"deny"}


@each_row(
    ("host", "port", "rule"),
    [
        ("pypi.org", 443, "fetch(bundle:pypi)"),
        ("raw.githubusercontent.com", 443, "fetch(bundle:github)"),
        ("docs.python.org", 80, "fetch(domain:docs.python.org)"),
        ("pypi.org", 22, "fetch(domain:pypi.org:22)"),
        ("2001:db8::1", 8443, "fetch(domain:[2001:db8::1]:8443)"),
        ("2001:db8::1", 443, "fetch(domain:2001:db8::1)"),
    ],
)
def test_the_answer_for_this_session_allows_the_bundle_or_the_host(host: str, port: int, rule: str):
    judging = engine()
    assert judging.judge_host(host, port).session_rule == rule
    judging.book.add_session_rule(rule)
    assert judging.judge_host(host, port).decision == "allow"
    assert judging.judge_host(host, 25).decision == "ask"
    assert judging.judge_host("upload.pypi.org").decision == "ask"


@each_row(
    ("rules", "host", "port", "decision"),
    [
        ({"allow": ("fetch(domain:a.test)",)}, "a.test", 8443, "ask"),
        ({"allow": ("fetch(domain:a.test:8443)",)}, "a.test", 8443, "allow"),
        ({"allow": ("fetch(domain:a.test:8443)",)}, "a.test", 443, "ask"),
        ({"allow": ("fetch(domain:*.a.test:22)",)}, "b.a.test", 22, "allow"),
        ({"allow": ("fetch",)}, "a.test", 22, "allow"),
        ({"allow": ("fetch",), "deny": ("fetch(domain:a.test)",)}, "a.test", 22, "deny"),
        ({"allow": ("fetch",), "deny": ("fetch(domain:a.test:22)",)}, "a.test", 443, "allow"),
        ({"allow": ("fetch",), "deny": ("fetch(bundle:npm)",)}, "registry.npmjs.org", 1, "deny"),
        ({"allow": ("fetch(bundle:registries)",)}, "index.crates.io", 443, "allow"),
        ({"allow": ("fetch(bundle:registries)",)}, "github.com", 443, "ask"),
        (
            {"allow": ("fetch(bundle:registries)",), "ask": ("fetch(domain:pypi.org)",)},
            *("pypi.org", 443, "ask"),
        ),
    ],
)
def test_rules_name_ports_and_bundles(rules: dict, host: str, port: int, decision: str):
    assert engine(**rules).judge_host(host, port).decision == decision


def test_an_unknown_bundle_is_refused_with_the_known_ones():
    for parse in (
        lambda: parse_rule("fetch(bundle:pipi)", "allow"),
        lambda: rules_for_names("npm,pipi", "command line"),
    ):
        with pytest.raises(ConfigError, match="Bundles: registries, pypi, npm, "):
            parse()


def test_names_of_the_command_line_are_bundles_domains_and_ports():
    rules = rules_for_names("pypi, docs.python.org,*.b.test,a.test:8443", "command line")
    assert [str(rule) for rule in rules] == [
        "fetch(bundle:pypi)",
        "fetch(domain:docs.python.org)",
        "fetch(domain:*.b.test)",
        "fetch(domain:a.test:8443)",
    ]
