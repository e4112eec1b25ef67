"""Texts that are sent to a service of the user's."""

import pytest

from agent_tui.config import PermissionMode
from agent_tui.permissions.verdict import Verdict
from agent_tui.tools.base import Intent
from tests.permissions.test_hosts import engine
from tests.support.rows import each_row


def verdict(judging, query: str = "python 3 news") -> Verdict:
    return judging.judge("web_search", Intent("search", "query", host="a.test", body=query))


@pytest.mark.parametrize(
    ("mode", "decision"),
    [("plan", "ask"), ("ask", "ask"), ("accept-edits", "ask"), ("full", "allow")],
)
def test_every_mode_but_full_asks(mode: PermissionMode, decision: str):
    judged = verdict(engine(mode))
    assert judged.decision == decision
    assert judged.only_reads


def test_one_answer_holds_for_all_texts_of_the_session():
    judging = engine()
    judging.book.add_session_rule(verdict(judging).session_rule)
    assert verdict(judging, "anything").decision == "allow"
    assert verdict(judging.for_reading(), "anything").decision == "allow"


@each_row(
    ("rules", "query", "decision"),
    [
        ({"allow": ("web_search",)}, "x", "allow"),
        ({"allow": ("web_search(python *)",)}, "Python  3 news", "allow"),
        ({"allow": ("web_search(python *)",)}, "my python", "ask"),
        ({"allow": ("web_search(c[ab])",)}, "ca", "ask"),
        ({"allow": ("web_search",), "deny": ("web_search(*acme*)",)}, "the ACME plan", "deny"),
        ({"allow": ("web_search",), "ask": ("web_search(*acme*)",)}, "acme", "ask"),
        ({"deny": ("web_search",), "allow": ("web_search(a)",)}, "a", "deny"),
        ({"allow": ("fetch",)}, "x", "ask"),
    ],
)
def test_rules_match_the_whole_text(rules, query, decision):
    assert verdict(engine(**rules), query).decision == decision


def test_who_cannot_be_asked_is_told_the_rule():
    judged = verdict(engine(is_interactive=False))
    assert judged.decision == "deny"
    assert "--allow web_search" in judged.why
