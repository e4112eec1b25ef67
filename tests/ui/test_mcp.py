"""MCP servers on the screen: the page, the question, the command."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Static

from agent_tui.commands.trust import server_question
from agent_tui.features.mcp.command import mcp_page
from agent_tui.features.mcp.hub import ServerView
from agent_tui.features.mcp.results import content_texts
from agent_tui.features.mcp.sources import FoundServer
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.server_spec import ServerSpec
from agent_tui.ui.screens.choice import ChoiceScreen, LineInputScreen
from agent_tui.ui.screens.modal import PageScreen
from tests.support.mcp_servers import Stage
from tests.ui.app_support import Ui, running_app

SPEC = ServerSpec("github", "/home/me/config.toml", ("npx", "-y", "a b"), env={"A": "${B}"})


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[Stage]:
    keeper = ProcessKeeper()
    made = Stage(tmp_path, keeper)
    yield made
    await made.hub.aclose()
    keeper.close()


def of_project(stage: Stage, name: str) -> None:
    """Name a server that the person was not asked about."""
    spec = replace(stage.add(name), origin="project")
    stage.sources.servers[-1] = FoundServer(spec, None)


def rows(ui: Ui) -> str:
    return "\n".join(str(row.render()) for row in ui.app.screen.query(Static))


async def asked(ui: Ui) -> ChoiceScreen:
    """The question, ready to be answered at once."""
    await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
    screen = ui.app.screen
    assert isinstance(screen, ChoiceScreen)
    screen._quiet_s = 0.0
    return screen


def facts(screen: ChoiceScreen) -> tuple[str, ...]:
    return screen.question.facts


async def test_servers_start_after_the_first_paint_and_the_page_shows_them(stage, tmp_path):
    stage.add("good")
    stage.add("bad", fault="crash")
    async with running_app(tmp_path, size=(100, 50), servers=stage.hub) as ui:
        await ui.until(lambda: any("MCP server bad" in notice for notice in ui.notices))
        await ui.until(lambda: stage.hub.servers[0].state == "ready")
        await ui.send("/mcp")
        assert isinstance(ui.app.screen, PageScreen)
        shown = rows(ui)
        assert "good: ready, 11 tools" in shown
        assert "bad: failed" in shown
        assert "no such database: please run setup" in shown
        await ui.pilot.press("escape")
        await ui.send("/mcp off good")
        await ui.send("/mcp off other")
        await ui.send("/mcp jump")
        assert ui.notices[-3:] == [
            "MCP server good is off for this run.",
            "There is no MCP server 'other'. Servers: good, bad.",
            "/mcp takes restart, on, off or ask, not jump.",
        ]
        assert stage.hub.servers[0].state == "off"
        await ui.send("/mcp restart good")
        await ui.until(lambda: stage.hub.servers[0].state == "ready")


@pytest.mark.thorough
async def test_a_projects_server_is_started_only_after_a_yes(stage, tmp_path):
    of_project(stage, "first")
    of_project(stage, "second")
    async with running_app(tmp_path, size=(100, 40), servers=stage.hub) as ui:
        screen = await asked(ui)
        assert "first" in rows(ui)
        assert "mcp_server.py" in rows(ui)
        screen._quiet_s = 1_000.0  # what was meant for the prompt answers nothing
        await ui.pilot.press("y", "n", "enter")
        assert ui.app.screen is screen
        assert ui.text == "", "answers too early are no writing"
        assert stage.notes("first") == []
        screen._quiet_s = 0.0
        await ui.pilot.press("y")
        await ui.until(lambda: ui.app.screen is not screen)
        await asked(ui)
        await ui.pilot.press("d")
        await ui.until(lambda: len(stage.sources.answers) == 2)
        assert stage.sources.answers == [("first", True), ("second", False)]
        await ui.until(lambda: stage.hub.servers[0].state == "ready")
        assert stage.hub.servers[1].why == "you said no to it"
        ui.app.prompt.clear()
        await ui.send("/mcp on second")
        assert "/mcp ask second" in ui.notices[-1]
        assert stage.notes("second") == []


@pytest.mark.thorough
async def test_esc_leaves_a_server_for_later_and_the_command_asks_again(stage, tmp_path):
    of_project(stage, "later")
    async with running_app(tmp_path, size=(100, 40), servers=stage.hub) as ui:
        screen = await asked(ui)
        assert screen.question.choices[screen.question.marked].value is None
        screen._quiet_s = 0.0
        await ui.pilot.press("n")
        await ui.settle()
        assert (stage.sources.answers, stage.notes("later")) == ([], [])
        await ui.send("/mcp ask later")
        await asked(ui)
        await ui.pilot.press("y")
        await ui.until(lambda: stage.hub.servers[0].state in ("starting", "ready"))


def test_the_page_says_how_to_have_a_server():
    page = mcp_page((), Path("/home/me"))
    assert "[mcp.servers.NAME]" in str(page)
    assert ".mcp.json" in str(page)


def test_the_page_shows_command_source_tools_and_notes():
    view = ServerView(SPEC, "ready", "", ("one",), ("tool x left out: y",))
    section = mcp_page((view,), Path("/home/me")).sections[0]
    assert section.heading == "github: ready, 1 tool"
    assert section.rows == (
        ("command", "npx -y 'a b'"),
        ("defined in", "~/config.toml"),
        ("tools", "one"),
        ("note", "tool x left out: y"),
    )


def test_the_question_shows_the_whole_command_and_nothing_that_steers():
    assert [*server_question(SPEC).facts] == [
        "npx -y 'a b'",
        "with A=${B}",
        "defined in /home/me/config.toml",
        "It runs with your permissions, unsupervised.",
    ]
    tricky = replace(SPEC, argv=("sh", "-c", "\x1b[2J\u202e; rm\n" + " " * 3_000 + "evil"))
    shown = "\n".join(server_question(tricky).facts)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.count("\n") == 3
    assert "evil" in shown


async def test_a_long_command_scrolls_and_the_answers_stay_in_sight(tmp_path):
    spec = replace(SPEC, argv=tuple(f"--option-{number}" for number in range(200)))
    async with running_app(tmp_path, size=(80, 24)) as ui:
        ui.app.push_screen(ChoiceScreen(server_question(spec)))
        await ui.settle()
        choices = ui.app.screen.query_one("#answers").region
        assert choices.height == 3
        assert choices.bottom < 23
        scrolled = ui.app.screen.query_one("#choice-scroll")
        await ui.pilot.press("j", "pagedown")
        assert scrolled.scroll_offset.y == 9
        await ui.pilot.press("k", "pageup")
        assert scrolled.scroll_offset.y == 0


@pytest.mark.thorough
async def test_a_form_of_a_server_is_filled_seen_and_sent(stage, tmp_path):
    stage.add("srv", fault="form")
    async with running_app(tmp_path, size=(100, 40), servers=stage.hub) as ui:
        await ui.until(lambda: stage.hub.servers != () and stage.hub.servers[0].state == "ready")
        await stage.take_up(ui.runtime.conversation.cwd)
        calling = asyncio.create_task(stage.hub.call("mcp__srv__form", {}, stage.told.append))
        assert "It says: Who are you?" in facts(await asked(ui))
        await ui.pilot.press("a")
        for typed in ("A", "Ada", "", "", "yes", ""):  # too short, then right; some are left out
            await ui.until(lambda: isinstance(ui.app.screen, LineInputScreen))
            screen = ui.app.screen
            await ui.pilot.pause()
            await ui.pilot.press(*typed, "enter")
            await ui.until(lambda screen=screen: ui.app.screen is not screen)
        assert facts(await asked(ui)) == (
            "who: Ada",
            "size: s",
            "sure: yes",
            "The model reads it, too.",
        )
        await ui.pilot.press("s")
        (said,) = content_texts((await calling)["content"])  # pyright: ignore[reportArgumentType]
        answer = {"who": "Ada", "size": "s", "sure": True}
        assert json.loads(said) == {"action": "accept", "content": answer}


async def test_a_form_that_is_left_is_cancelled_and_a_page_only_told(stage, tmp_path):
    stage.add("srv", fault="form")
    async with running_app(tmp_path, size=(100, 40), servers=stage.hub) as ui:
        await ui.until(lambda: stage.hub.servers != () and stage.hub.servers[0].state == "ready")
        await stage.take_up(ui.runtime.conversation.cwd)
        calling = asyncio.create_task(stage.hub.call("mcp__srv__form", {}, stage.told.append))
        await asked(ui)
        await ui.pilot.pause()
        await ui.pilot.press("a")
        await ui.until(lambda: isinstance(ui.app.screen, LineInputScreen))
        await ui.pilot.pause()
        await ui.pilot.press("escape")
        assert '"cancel"' in str(await calling)
        page = await stage.hub.call("mcp__srv__page", {}, stage.told.append)
        assert '"decline"' in str(page)
        assert "Pay here. https://pay.invalid/" in ui.notices[-1]


async def test_a_form_goes_with_its_call(stage, tmp_path):
    stage.add("srv", fault="form")
    async with running_app(tmp_path, size=(100, 40), servers=stage.hub) as ui:
        await ui.until(lambda: stage.hub.servers != () and stage.hub.servers[0].state == "ready")
        await stage.take_up(ui.runtime.conversation.cwd)
        calling = asyncio.create_task(stage.hub.call("mcp__srv__form", {}, stage.told.append))
        screen = await asked(ui)
        calling.cancel()
        await ui.until(lambda: ui.app.screen is not screen)
