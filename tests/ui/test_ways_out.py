"""Whatever a text holds, nothing that a terminal would obey leaves the screen."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.theme import BUILTIN_THEMES
from textual.widgets._toast import Toast

from agent_tui.commands.sessions import SessionsOfProject
from agent_tui.events import ApprovalRequest
from agent_tui.features.session_picker.screen import session_rows
from agent_tui.messages import Todo
from agent_tui.sessions.listing import SessionSummary
from agent_tui.ui.app import AgentApp
from agent_tui.ui.approval_panel import approval_lines
from agent_tui.ui.chat.lines_above_prompt import plan_lines, queue_lines
from agent_tui.ui.diff_view import diff_lines, parse_diff
from agent_tui.ui.options import UiOptions
from agent_tui.ui.screens.picker import column_widths, picker_line
from agent_tui.ui.styled_lines import Line
from agent_tui.ui.terminal.clipboard import copy_text
from agent_tui.ui.terminal.state import crash_report, title_sequence
from agent_tui.ui.theme.palette import make_palette
from agent_tui.ui.transcript.blocks import AssistantBlock, Block, ToolBlock, UserBlock
from agent_tui.ui.transcript.markdown import markdown_parser
from agent_tui.ui.transcript.painter import BlockPainter
from agent_tui.ui.transcript.plain import plain_text
from tests.support.models import listed_services
from tests.support.runtime import Stage
from tests.support.terminal_attacks import ATTACKS, hostile_text, what_is_left
from tests.ui.app_support import asking

PALETTE = make_palette(BUILTIN_THEMES["textual-dark"].to_color_system().generate(), ansi=False)
PARSER = markdown_parser()
NOW = datetime(2026, 1, 1, tzinfo=UTC)

blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(UserBlock, hostile_text),
    st.builds(AssistantBlock, hostile_text),
    st.builds(ToolBlock, hostile_text, hostile_text, hostile_text, st.just("ok"), hostile_text),
)


def drawn(lines: list[Line]) -> str:
    return "\n".join(line.row for line in lines)


def links(lines: list[Line]) -> set[str]:
    """Addresses that the terminal would be told to open on a click."""
    found = {s.style.link for line in lines for s in line.segments if s.style is not None}
    return {link for link in found if link}


@settings(max_examples=60, deadline=None)
@given(blocks, st.booleans())
def test_a_block_of_the_chat(block: Block, expanded: bool):
    painter = BlockPainter(PALETTE, PARSER, 60, show_thinking=True)
    lines = painter.paint(block, is_expanded=expanded)
    assert what_is_left(drawn(lines)) == set()
    assert what_is_left("".join(links(lines))) == set()
    assert what_is_left(plain_text(block, painter)) == set()


@settings(max_examples=60, deadline=None)
@given(hostile_text)
def test_a_diff_and_a_question(text: str):
    diff = f"--- a/{text}\n+++ b/{text}\n@@ -1 +1,2 @@ {text}\n-{text}\n+{text}\n"
    assert what_is_left(drawn(diff_lines(parse_diff(diff), 60, PALETTE))) == set()
    for kind in ("diff", "command", "text"):
        request = ApprovalRequest("1", "c", "bash", text, text, kind, text, text)
        assert what_is_left(drawn(approval_lines(request, 60, PALETTE))) == set()


@settings(max_examples=60, deadline=None)
@given(hostile_text)
def test_a_row_to_pick_and_what_is_told_beside_it(text: str):
    summary = SessionSummary(
        id="12345678",
        path=Path("/s/x.jsonl"),
        cwd=Path("/w") / text.replace("\0", "").replace("/", "") / "x",
        name=text,
        first_prompt=text,
        message_count=1,
        modified=NOW,
        model=text,
        parent_session=None,
        size_bytes=1,
        launch_cwd=None,
        context_tokens=0,
    )
    (row,) = session_rows([summary], SessionsOfProject(Path("/elsewhere")), NOW)
    shown = picker_line(row, column_widths([row.columns]), 70, 16)
    assert what_is_left(shown.plain) == set()
    assert "\n" not in shown.plain
    assert what_is_left(str(row.preview)) == set()


@settings(max_examples=60, deadline=None)
@given(hostile_text)
def test_the_title_the_plan_the_queue_and_the_clipboard(text: str):
    title = title_sequence(text)
    assert title.startswith("\x1b]2;")
    assert title.endswith("\x07")
    assert what_is_left(title[4:-1]) == set()
    assert what_is_left(plan_lines((Todo(text=text, status="pending"),)).plain) == set()
    assert what_is_left(queue_lines((text,)).plain) == set()
    copied: list[str] = []
    copy_text(text, {}, copied.append)
    assert what_is_left(copied[0]) == set()


async def test_a_notification_shows_attacks_as_marks_and_markup_as_text(tmp_path: Path):
    runtime = asking(Stage(tmp_path))
    app = AgentApp(lambda: UiOptions(runtime, listed_services()))
    async with app.run_test(notifications=True) as pilot:
        app.notify("".join(ATTACKS.values()) + "[red]x[/red]", title="\x1b]0;t\x07")
        while not (toasts := app.screen.query(Toast)):
            await pilot.pause()
        shown = str(toasts.first().render())
        assert what_is_left(shown) == set()
        assert "[red]x[/red]" in shown


def test_a_crash_is_told_without_keys_and_values(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary-0123456789")
    said = "what the person said"
    try:
        raise RuntimeError(f"bad header canary-0123456789 \x1b[2J {len(said)}")
    except RuntimeError as error:
        shown = crash_report(error).plain
    assert "RuntimeError: bad header [key removed]" in shown
    assert "canary-0123456789" not in shown.replace('"canary-0123456789"', "")
    assert what_is_left(shown) == set()
