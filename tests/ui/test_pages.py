from dataclasses import replace
from pathlib import Path

from agent_tui.commands.core.front import Page, PageSection
from agent_tui.config import PermissionSettings
from agent_tui.features.context.command import tools_page
from agent_tui.features.permissions.command import permissions_page
from agent_tui.messages import ToolSpec
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.tools.base import Intent
from agent_tui.ui.screens.modal import PageScreen
from tests.ui.app_support import running_app


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
    permissions.book.add_session_rule("bash(make)")
    intent = Intent(title="rm x", access="execute", command="rm\nx")
    permissions.record("bash", intent, permissions.judge("bash", intent))
    answered = replace(permissions.judge("bash", intent), decision="allow", by="person", why="w")
    permissions.record("bash", intent, answered)
    _modes, rules, change, counts, decided = permissions_page(permissions).sections
    assert rules.rows == (
        ("deny", "bash(rm *)   config.toml"),
        ("allow", "bash(make)   this session"),
    )
    assert str(tmp_path / "rules.toml") in change.rows[1][1]
    assert counts.rows == (("", "1 denied by rules, 1 allowed by you"),)
    (answer, (when, what)) = decided.rows
    assert answer[1] == "bash: rm x   allowed by you (reason for asking: w)"
    assert when.endswith(" deny")
    assert what == "bash: rm x   denied by rules (the deny rule bash(rm *) applies to: rm)"


async def test_a_page_whose_newest_is_last_opens_there(tmp_path: Path) -> None:
    rows = tuple((str(number), "line") for number in range(200))
    async with running_app(tmp_path) as ui:
        for opens_at_end in (False, True):
            page = Page("Job 1", (PageSection("", rows),), opens_at_end=opens_at_end)
            screen = PageScreen(page)
            ui.show(screen)
            await ui.until(lambda screen=screen: screen.is_current)
            await ui.drawn()
            shown = screen.query_one("#page")
            assert shown.scroll_y == (shown.max_scroll_y if opens_at_end else 0)
            assert shown.max_scroll_y > 100
            await ui.pilot.press("escape")
            await ui.settle()
