"""The example of docs/pages/permissions.md is what the engine says."""

from pathlib import Path

import pytest

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.shell.parts import split_command
from agent_tui.tools.base import Intent

_COMMAND = "git log | head && rm -rf build"
_NONE = PermissionSettings()
_ALLOW = PermissionSettings(allow=("bash(rm -rf build)",))
_DENY = PermissionSettings(deny=("bash(rm *)",))
_MODES: tuple[PermissionMode, ...] = ("plan", "ask", "accept-edits", "full")


def test_the_example_has_three_parts():
    parts = split_command(_COMMAND).commands
    assert [part.source for part in parts] == ["git log", "head", "rm -rf build"]


@pytest.mark.parametrize(
    ("rules", "decisions"),
    [
        (_NONE, ["deny", "ask", "ask", "allow"]),
        (_ALLOW, ["deny", "allow", "allow", "allow"]),
        (_DENY, ["deny", "deny", "deny", "deny"]),
    ],
)
def test_the_example_is_decided_by_rules_and_mode(rules: PermissionSettings, decisions: list[str]):
    found = [_permissions(mode, rules).judge("bash", _intent()).decision for mode in _MODES]
    assert found == decisions


def test_the_rule_that_is_offered_is_for_exactly_the_example():
    assert _permissions("ask", _NONE).judge("bash", _intent()).session_rule == f"bash(= {_COMMAND})"


def _permissions(mode: PermissionMode, rules: PermissionSettings) -> PermissionEngine:
    return PermissionEngine(
        mode=mode,
        rules=rules,
        workspace=Path("/ws/project"),
        project_rules_file=Path("/nowhere/permissions.toml"),
        scratch_folders=(),
    )


def _intent() -> Intent:
    return Intent(title=_COMMAND, access="execute", command=_COMMAND)
