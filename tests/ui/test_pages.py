from pathlib import Path

from agent_tui.commands.core.pages import PageSection
from agent_tui.commands.permissions import permissions_page
from agent_tui.commands.tools import tools_page
from agent_tui.config import PermissionSettings
from agent_tui.messages import ToolSpec
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.tools.base import Intent


def spec(name: str) -> ToolSpec:
    return ToolSpec(name=name, description=f"Does {name}. And more.", parameters={})


def test_tools_are_told_by_the_first_sentence_of_their_full_description() -> None:
    specs = [spec("read"), spec("bash")]
    short = [ToolSpec(name=each.name, description="Short.", parameters={}) for each in specs]
    rows = (("read", "Does read."), ("bash", "Does bash."))
    assert tools_page(short, specs, 1).sections == (PageSection("", rows),)


def test_tools_that_the_window_has_no_room_for_are_named() -> None:
    has, left_out = tools_page([spec("read")], [spec("read"), spec("bash")], 1).sections
    assert has.rows == (("read", "Does read."),)
    assert "too small" in left_out.heading
    assert left_out.rows == (("bash", "Does bash."),)


def test_permissions_show_the_source_of_rules_and_what_was_decided(tmp_path: Path) -> None:
    permissions = PermissionEngine(
        mode="ask",
        rules=PermissionSettings(deny=("bash(rm *)",)),
        workspace=tmp_path,
        project_rules_file=tmp_path / "rules.toml",
    )
    permissions.add_session_rule("bash(make)")
    intent = Intent(title="rm x", access="execute", command="rm\nx")
    permissions.record("bash", intent, permissions.judge("bash", intent))
    _modes, rules, counts, decided = permissions_page(permissions).sections
    assert rules.rows == (
        ("deny", "bash(rm *)   config.toml"),
        ("allow", "bash(make)   this session"),
    )
    assert counts.rows == (("", "1 denied by rules"),)
    ((when, what),) = decided.rows
    assert when.endswith(" deny")
    assert what == "bash: rm x   by rule: the deny rule bash(rm *) applies to: rm"
