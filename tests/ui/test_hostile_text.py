"""Hostile and odd text on the whole screen: every row as the terminal would get it."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from rich.cells import cell_len
from textual.widgets import Input

from agent_tui.events import (
    ApprovalRequest,
    ApprovalRequested,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    TextDelta,
    TodosChanged,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import AssistantMessage, TextContent, Todo, ToolResultMessage, UserMessage
from agent_tui.sessions.entries import Header, LabelEntry, MessageEntry, SessionInfoEntry
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.ui.screens.choice import LineInputScreen
from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    BashBlock,
    Block,
    DividerBlock,
    NoticeBlock,
    StartRow,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
    WelcomeBlock,
)
from agent_tui.ui.transcript.plain import plain_texts
from tests.support import hostile_mcp_server
from tests.support.mcp_servers import Stage as Servers
from tests.support.runtime import Stage
from tests.support.terminal_attacks import ATTACKS, MARKUP, what_is_left
from tests.ui.app_support import Ui, asking, held, running_app

ODD = (
    "e\u0301\u0316 Z\u0351\u036b\u0343 combining, \u1100\u1161\u11a8 jamo, \u0e19\u0e49\u0e33 thai",
    "👩\u200d👩\u200d👧 🏴\U000e0067\U000e0062\U000e007f 🇩🇪 ☎\ufe0f emoji, 漢字かな wide, ｶﾅ half",
    "\u05e9\u05dc\u05d5\u05dd hebrew, \u0645\u0631\u062d\u0628\u0627 arabic",
    "".join(f"\x1b[{30 + n % 8}m▀\x1b[0m" for n in range(200)),
    "bytes \udcff\udcfe\udc80 that were no UTF-8",
    "\t\ttabs\tand\x0bvertical\x0cfeeds\x85next",
)
ALL = (*ATTACKS.values(), *MARKUP, *ODD)
LINES = "\n".join(ALL)
ONE_LINE = " ".join(ALL)
FEW = (LINES, ONE_LINE, "".join(reversed(ALL)), *ODD, "[red]x[/red]")
BodyKind: TypeAlias = Literal["command", "diff", "text"]


def screen_rows(ui: Ui) -> list[str]:
    """What is on the screen, row by row."""
    return [strip.text for strip in ui.app.screen._compositor.render_strips()]


def assert_harmless(ui: Ui) -> str:
    """Every row fills the screen exactly and holds nothing that steers it; returns them all."""
    rows = screen_rows(ui)
    assert len(rows) == ui.app.size.height
    for row in rows:
        assert what_is_left(row) == set(), row
        assert cell_len(row) == ui.app.size.width, row
    return "\n".join(rows)


def chat_blocks() -> list[Block]:
    ten_megabytes = f"{ONE_LINE} " + "x" * 10_000_000 + ONE_LINE
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n" + "".join(
        f"-{text}\n+{text} changed\n" for text in ALL if "\n" not in text
    )
    return [
        WelcomeBlock(ONE_LINE, ((ONE_LINE, LINES),), (StartRow(ONE_LINE, LINES, LINES, ONE_LINE),)),
        UserBlock(LINES),
        AssistantBlock(
            f"# {ONE_LINE}\n\n* {LINES}\n\n```{ONE_LINE}\n{LINES}\n```", True, "error", LINES
        ),
        AssistantBlock("| a | b |\n|---|---|\n" + "".join(f"| {t} | `{t}` |\n" for t in ALL)),
        ThinkingBlock(LINES),
        ToolBlock("t1", ONE_LINE, LINES, "error", LINES, diff, LINES),
        BashBlock("t2", LINES, "error", LINES, 1),
        SummaryBlock(LINES, 0, 0, LINES),
        NoticeBlock("error", LINES),
        DividerBlock(LINES),
        UserBlock(ten_megabytes),
        ToolBlock("t3", "read", ten_megabytes, "error", ten_megabytes, summary=ten_megabytes),
    ]


@pytest.mark.thorough
async def test_every_kind_of_block_on_every_page_of_the_chat(tmp_path: Path):
    async with running_app(tmp_path, size=(150, 100)) as ui:
        chat = ui.chat
        chat.load(chat_blocks())
        chat.toggle_details()
        chat.show_thinking = True
        await ui.until(lambda: all(item.is_measured for item in chat._stack))
        shown = ""
        for y in range(0, chat.virtual_size.height, chat.size.height):
            chat.scroll_to(y=y, animate=False)
            await ui.pilot.pause()
            shown += assert_harmless(ui)
        for text in MARKUP:
            assert text in shown
        printed = "\n".join(plain_texts(chat.blocks[:-2], 150, newest_first=False))
        assert what_is_left(printed) == set()


@pytest.mark.thorough
async def test_a_running_turn_with_its_plan_queue_title_and_retry(tmp_path: Path):
    async with running_app(tmp_path, held(), size=(90, 40)) as ui:
        await ui.send("hello")
        result = ToolResultMessage(
            tool_call_id="c1",
            tool_name="bash",
            content=(TextContent(text=LINES),),
            details={"summary": ONE_LINE, "diff": f"--- {ONE_LINE}\n+++ b\n@@ -0,0 +1 @@\n+x"},
        )
        ui.show_events(
            ReplyStarted("m"),
            *(TextDelta(piece) for piece in LINES),
            ReplyFinished("e", AssistantMessage()),
            ToolStarted("c1", "bash", {}, ONE_LINE),
            ToolOutputDelta("c1", LINES),
            TodosChanged((Todo(text=LINES, status="in_progress"),)),
        )
        await ui.settle()
        await ui.send(ONE_LINE)
        await ui.settle()
        assert_harmless(ui)
        ui.show_events(ToolFinished("e", "c1", result), RetryScheduled(1, 3, 8.0, LINES))
        ui.runtime.sessions.rename(ONE_LINE)
        ui.app.view.refresh_status()
        ui.app.notify(LINES, title=ONE_LINE)
        await ui.settle()
        shown = assert_harmless(ui)
        assert "[red]x[/red]" in shown


@pytest.mark.parametrize(
    "kind",
    ["command", *(pytest.param(kind, marks=pytest.mark.thorough) for kind in ("diff", "text"))],
)
async def test_a_question(tmp_path: Path, kind: BodyKind):
    async with running_app(tmp_path, held(), size=(80, 50), approval_quiet_s=3_600.0) as ui:
        await ui.send("hello")
        body = LINES if kind != "diff" else f"--- a\n+++ a\n@@ -1 +1 @@ {ONE_LINE}\n-{ONE_LINE}\n+x"
        request = ApprovalRequest("r", "c", ONE_LINE, LINES, body, kind, LINES, ONE_LINE)
        ui.show_events(ApprovalRequested(request))
        await ui.settle()
        ui.approval.arm()
        scroll = ui.app.query_one("#approval-scroll")
        for y in range(0, scroll.virtual_size.height, max(1, scroll.size.height)):
            scroll.scroll_to(y=y, animate=False)
            ui.app.query_one("#approval-text").scroll_to(y=y, animate=False)
            await ui.pilot.pause()
            assert_harmless(ui)


@pytest.mark.thorough
async def test_the_rows_of_pickers_and_the_tree(tmp_path: Path):
    async with running_app(tmp_path, size=(100, 40)) as ui:
        for number, text in enumerate((LINES, *ODD)):
            header = Header(id=f"{number:08}-0000", cwd=str(ui.workspace))
            log = SessionStore(ui.stage.sessions).create(header)
            log.append(MessageEntry(message=UserMessage(content=text)))
            log.append(MessageEntry(message=AssistantMessage(content=(TextContent(text=text),))))
            log.append(SessionInfoEntry(name=text))
            log.close()
        await ui.send("/resume")
        await ui.until(lambda: ui.app.screen.query("#picker-list"))
        for _ in range(4):
            await ui.pilot.press("down")
            await ui.settle()
            assert_harmless(ui)
        ui.app.screen.query_one(Input).insert_text_at_cursor(ONE_LINE)
        await ui.settle()
        await ui.pilot.press("escape", "escape")  # the first clears the search
        await ui.until(lambda: not ui.app.screen.query("#picker-list"))
        log = ui.runtime.conversation.log
        said = log.append(MessageEntry(message=UserMessage(content=LINES)))
        log.append(MessageEntry(message=AssistantMessage(content=(TextContent(text=LINES),))))
        log.append(LabelEntry(target_id=said.id, label=ONE_LINE))
        ui.redraw()
        await ui.send("/tree")
        await ui.until(lambda: ui.app.screen.query("RowList"))
        await ui.settle()
        assert_harmless(ui)


@pytest.mark.thorough
async def test_the_prompt_its_history_and_a_line_that_is_asked_for(tmp_path: Path):
    async with running_app(tmp_path, size=(100, 40)) as ui:
        for text in FEW:
            await ui.send(f"/nothing {text}")
        ui.app.prompt.clear()
        await ui.pilot.press("ctrl+r")
        await ui.settle()
        assert_harmless(ui)
        await ui.pilot.press("escape")
        ui.app.push_screen(LineInputScreen(LINES, LINES, ONE_LINE, empty_means=ONE_LINE))
        await ui.settle()
        assert_harmless(ui)


@pytest.mark.thorough
async def test_a_search_for_hostile_text(tmp_path: Path):
    async with running_app(tmp_path, size=(100, 30)) as ui:
        ui.chat.load([UserBlock(LINES), ToolBlock(LINES, LINES, LINES, "ok", LINES)])
        await ui.pilot.press("ctrl+f")
        for text in FEW:
            ui.app.query_one("#find-text", Input).value = text
            await ui.settle()
            for row in screen_rows(ui):
                assert what_is_left(row) == set(), row
        await ui.pilot.press("enter", "escape")
        await ui.settle()
        assert_harmless(ui)


async def test_output_that_is_no_text_at_all(tmp_path: Path):
    printed = b"\xff\xfe\x80 \x1b[31mred\x1b[0m \x1b]0;owned\x07 \xe2\x82 end\n"
    for errors in ("replace", "surrogateescape"):
        text = printed.decode("utf-8", errors)
        async with running_app(tmp_path) as ui:
            ui.chat.load([ToolBlock("c", "bash", "bash x", "error", text)])
            await ui.settle()
            shown = assert_harmless(ui)
        assert "\N{REPLACEMENT CHARACTER}" * 3 + " red  " in shown
        assert "end" in shown
        assert "owned" not in shown


@pytest.mark.thorough
async def test_a_tool_server_with_its_names_words_questions_and_results(tmp_path: Path):
    keeper = ProcessKeeper()
    servers = Servers(tmp_path, keeper)
    for way in ("own names", "many bad tools", "escapes", "progress flood"):
        argv = (sys.executable, "-I", "-S", hostile_mcp_server.__file__, way)
        servers.add(way.replace(" ", "-"), argv=argv)
    attack = hostile_mcp_server.ORDER
    calls = tuple(
        call(f"c{number}", f"mcp__{name}__do", text=attack)
        for number, name in enumerate(("escapes", "progress-flood"))
    )
    stage = Stage(tmp_path)
    runtime = asking(stage, Reply(tool_calls=calls), Reply("done"), servers=servers.hub)
    async with running_app(
        tmp_path, size=(120, 50), stage=stage, runtime=runtime, servers=servers.hub
    ) as ui:
        await ui.until(lambda: all(one.state == "ready" for one in servers.hub.servers))
        await ui.send("/mcp")
        for _ in range(9):
            assert_harmless(ui)
            await ui.pilot.press("pagedown")
        assert "escapes: ready" in assert_harmless(ui)
        await ui.pilot.press("escape")
        await ui.send("go")
        for _ in calls:
            assert "IGNORE ALL RULES" in assert_harmless(ui)
            ui.approval.arm()
            await ui.pilot.press("y")
            await ui.settle()
        assert "done" in assert_harmless(ui)
    await servers.hub.aclose()
    keeper.close()


@pytest.mark.thorough
async def test_the_model_and_the_folder_in_the_status_bar(tmp_path: Path):
    async with running_app(tmp_path, size=(120, 30)) as ui:
        fields = ui.status
        for text in FEW:
            ui.app.status.show(
                replace(fields, folder=text, branch=text, model=text, name=text, badge=text)
            )
            await ui.pilot.pause()
            assert_harmless(ui)
