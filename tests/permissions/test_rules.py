from pathlib import Path

import pytest

from agent_tui.errors import ConfigError
from agent_tui.permissions.rules import (
    RULED_TOOLS,
    outside_rule,
    parse_rule,
    rule_for_command,
)
from agent_tui.permissions.shell.parts import split_command
from agent_tui.tools.registry import default_toolbox
from tests.support.rows import each_row
from tests.support.tool_calls import KEEPER


@each_row(
    ("rule", "command", "match"),
    [
        ("bash(git status)", "git status", "yes"),
        ("bash(git status)", "git  'status'", "yes"),
        ("bash(git status)", "git status -s", "no"),
        ("bash(git status)", "git statusx", "no"),
        ("bash(git commit *)", "git commit", "yes"),
        ("bash(git commit *)", "git commit -m 'a b'", "yes"),
        ("bash(git commit *)", "git commit -m $x", "yes"),
        ("bash(git commit *)", "git -c a=b commit", "no"),
        ("bash(git commit *)", "'git commit' x", "no"),
        ("bash(git commit *)", "A=1 git commit", "no"),
        ("bash(git commit *)", "$x commit", "maybe"),
        ("bash(npm run test:*)", "npm run test:unit", "yes"),
        ("bash(npm run test:*)", "npm run test:a/b", "no"),
        ("bash(npm run test:*)", "npm run 'test:a b'", "no"),
        ("bash(cat src/*)", "cat src/a", "yes"),
        ("bash(cat src/*)", "cat src/../x", "no"),
        ("bash(rm '*')", "rm x", "no"),
        ("bash(*)", "anything at all", "yes"),
        ("bash", "anything at all", "yes"),
        ("bash(= rm *)", "rm x", "no"),
        ("bash(a; b)", "a", "no"),
    ],
)
def test_a_rule_matches_word_by_word(rule: str, command: str, match: str):
    (part, *_) = split_command(command).commands
    assert parse_rule(rule, "allow").matches_part(part) == match


@each_row(
    ("rule", "command", "match"),
    [
        ("bash(rm *)", "/bin/rm x", "yes"),
        ("bash(rm *)", "A=1 rm x", "yes"),
        ("bash(rm *)", "RM x", "yes"),
        ("bash(rm *)", "r? x", "maybe"),
        ("bash(rm *)", "$x y", "maybe"),
        ("bash(rm *)", "ls $x", "no"),
        ("bash(git push *)", "git -C x -c a=b push", "yes"),
        ("bash(git push *)", "git $x", "maybe"),
        ("bash(git push)", "git push $x", "maybe"),
        ("bash(git push)", "git push $x y", "no"),
        ("bash(git push)", "git push", "yes"),
        ("bash(./deploy.sh *)", "./deploy.sh now", "yes"),
        ("bash(sudo *)", "sudo ls", "yes"),
        ("bash(eval *)", "eval ls", "yes"),
    ],
)
def test_a_deny_rule_sees_through_disguises(rule: str, command: str, match: str):
    (part, *_) = split_command(command).commands
    assert parse_rule(rule, "deny").matches_part(part, ignore_prefix=True) == match


@each_row(
    ("pattern", "path", "matches"),
    [
        ("docs/**", "/ws/docs/a/b.md", True),
        ("docs/*", "/ws/docs/a/b.md", False),
        ("docs/**", "/ws/docs-evil/a", False),
        ("docs/**", "/ws-evil/docs/a", False),
        ("**/*.py", "/ws/a.py", True),
        ("**/*.py", "/ws/x/y/a.py", True),
        ("**", "/ws/a", True),
        ("**", "/elsewhere/a", False),
        ("*", "/elsewhere/a", True),
        ("/elsewhere/**", "/elsewhere/a", True),
        ("./a", "/ws/a", True),
        ("a?", "/ws/ab", True),
    ],
)
def test_path_patterns(pattern: str, path: str, matches: bool):
    rule = parse_rule(f"write({pattern})", "allow")
    assert rule.matches_path(Path(path), Path("/ws")) is matches


@each_row("text", ["", "()", "bash()", "bash(x", "BASH(x)", "rm -rf x"])
def test_what_is_no_rule_is_refused(text: str):
    with pytest.raises(ConfigError, match=r"is not a rule|never applies"):
        parse_rule(text, "allow")


@each_row(
    ("command", "rule"),
    [
        ("pytest -q tests", "bash(pytest -q tests)"),
        ("git commit -m 'x'", "bash(git commit *)"),
        ("git add a b", "bash(git add *)"),
        ("git add a > b", "bash(= git add a > b)"),
        ("git -c x=y commit", "bash(git -c x=y commit)"),
        ("rm *", "bash(= rm *)"),
        ("npm test && npm run lint", "bash(= npm test && npm run lint)"),
        ("make $TARGET", "bash(= make $TARGET)"),
    ],
)
def test_the_rule_offered_is_the_narrowest_of_use(command: str, rule: str):
    assert rule_for_command(command) == rule
    again = parse_rule(rule, "allow")
    (part, *_) = split_command(command).commands
    assert again.matches_whole(command) or again.matches_part(part) == "yes"


def test_an_exact_rule_holds_for_that_command_only():
    rule = parse_rule("bash(= rm *)", "allow")
    assert rule.matches_whole("rm *")
    assert not rule.matches_whole("rm x")
    assert not parse_rule("bash(rm *)", "allow").matches_whole("rm *")


def test_of_the_rules_for_another_programs_tool_deny_counts_first_then_the_longest():
    allow, ask = parse_rule("mcp__web", "allow"), parse_rule("mcp__web__search", "ask")
    deny, other = parse_rule("mcp__web__*", "deny"), parse_rule("mcp__other", "deny")
    assert outside_rule("mcp__web__search", [allow, ask, deny, other]) == deny
    assert outside_rule("mcp__web__search", [ask, allow, other]) == ask
    assert outside_rule("mcp__web__read", [ask, allow, other]) == allow
    assert outside_rule("mcp__web__read", [other, parse_rule("mcp__web(x)", "allow")]) is None
    assert outside_rule("mcp__web__read", [parse_rule("mcp__web(x)", "deny")]) is not None


@each_row(
    ("rule", "command", "is_allowed"),
    [
        ("bash(pytest:*)", "pytest", True),
        ("bash(pytest:*)", "pytest -q tests", True),
        ("Bash(git log:*)", "git log --oneline", True),
        ("Bash(npm run test:*)", "npm run test:unit", True),
        ("Bash(npm run test:*)", "npm run test --watch", True),
        ("bash(pytest:*)", "pytest-watch", False),
        ("bash(pytest:*)", "rm x", False),
        ("Bash(git log:*)", "git push", False),
    ],
)
def test_rules_in_the_words_of_other_agents_are_understood(
    rule: str, command: str, is_allowed: bool
):
    parsed = parse_rule(rule, "allow")
    (part,) = split_command(command).commands
    assert (parsed.matches_part(part) == "yes") == is_allowed


@pytest.mark.parametrize(
    "rule", ["bsh(git status)", "Task(x)", "bash(cd src && pytest *)", "bash(ls | wc *)"]
)
def test_a_rule_that_can_never_hold_is_told(rule: str):
    with pytest.raises(ConfigError, match="never appl"):
        parse_rule(rule, "allow")


def test_the_tools_that_rules_speak_of_are_those_there_are():
    known = {spec.name for spec in default_toolbox(KEEPER).specs}
    assert known - RULED_TOOLS == set()
