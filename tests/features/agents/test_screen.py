"""``/agents`` on the screen, in lines, and what can be done from it."""

import io
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.widgets import Static

from agent_tui.agent.part import Part
from agent_tui.features.agents.screen import AgentsScreen
from agent_tui.features.print.printer import print_command
from agent_tui.features.review.part import ReviewPart
from agent_tui.features.review.screen import ReviewScreen
from agent_tui.messages import Message
from agent_tui.sessions.entries import Header
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.ui.screens.choice import ChoiceScreen, LineInputScreen
from agent_tui.ui.screens.picker import RowList
from tests.sessions.importers import claude_lines
from tests.support.git_repository import git
from tests.support.models import listed_services
from tests.support.other_program import opened_elsewhere
from tests.support.runtime import Stage
from tests.support.session_values import entry, reply, user
from tests.ui.app_support import Ui, held, listed, running_app

WIDE = (130, 40)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def begin(stage: Stage, *messages: Message, cwd: Path | None = None) -> SessionLog:
    log = SessionStore(stage.sessions).create(Header(cwd=str(cwd or stage.workspace)))
    log.append_many([entry(message) for message in messages])
    return log


def write_claude(home: Path, cwd: str = "/w") -> Path:
    path = home / ".claude/projects/-w/a.jsonl"
    path.parent.mkdir(parents=True)
    asked = claude_lines.said("u1", None, "Mend it.", cwd=cwd)
    claude_lines.write(path, asked, claude_lines.replied("a1", "u1", claude_lines.text("Mended.")))
    return path


@asynccontextmanager
async def showing(stage: Stage, rows: int, argument: str = "") -> AsyncGenerator[Ui, None]:
    async with running_app(stage.folder, stage=stage, size=WIDE) as ui:
        await ui.send(f"/agents {argument}".strip())
        await ui.until(lambda: isinstance(ui.app.screen, AgentsScreen))
        await ui.until(lambda: count(ui) == rows)
        yield ui


def count(ui: Ui) -> int:
    """How many rows are listed; -1 before there is a list."""
    return next((found.count for found in ui.app.screen.query(RowList)), -1)


def text(ui: Ui, selector: str) -> str:
    return str(ui.app.screen.query_one(selector, Static).render())


async def test_the_list_follows_what_agents_do(stage: Stage, home: Path):
    write_claude(home)
    with begin(stage, user("please fix the parser")) as log:
        log.note_state("working")
        async with showing(stage, 2) as ui:
            rows = listed(ui.app.screen)
            assert "fix the parser" in rows[0]
            assert rows[0].endswith("working")
            assert "Mend it." in rows[1]
            assert "Claude Code" in rows[1]
            assert "fix the parser – › please fix the parser" in rows[0]
            assert "open here" in text(ui, "#picker-message")
            log.note_state("waiting")
            await ui.until(lambda: listed(ui.app.screen)[0].endswith("! asking"))
            assert text(ui, "#picker-heading") == "Agents: 2 sessions: 1 needs you"
            log.append(entry(reply("All\nfixed.")))
            log.note_state("idle")
            await ui.until(lambda: listed(ui.app.screen)[0].endswith("done"))
            assert "fix the parser – fixed." in listed(ui.app.screen)[0]
            begin(stage, user("another")).close()
            await ui.until(lambda: count(ui) == 3)


async def test_n_shows_what_needs_the_user_and_a_slash_searches(stage: Stage, home: Path):
    write_claude(home)
    with begin(stage, user("fix the parser")) as log:
        log.note_state("waiting")
        async with showing(stage, 1, "needs me") as ui:
            assert "n all" in text(ui, "#picker-keys")
            await ui.pilot.press("n")
            await ui.until(lambda: count(ui) == 2)
            await ui.pilot.press("slash")
            await ui.pilot.press(*"claude")
            await ui.until(lambda: count(ui) == 1)
            assert "Mend it." in listed(ui.app.screen)[0]
            await ui.pilot.press("escape", "n")
            await ui.until(lambda: count(ui) == 1)
            log.note_state("idle")
            await ui.until(lambda: count(ui) == 0)
            assert "No agent needs you" in text(ui, "#picker-message")


async def test_enter_opens_ours_and_a_copy_of_anothers(stage: Stage, home: Path):
    path = write_claude(home, str(stage.workspace))
    before = path.read_bytes()
    async with showing(stage, 1) as ui:
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.sent == ["Mend it."])
        assert path.read_bytes() == before
        copy = ui.path
        await ui.send("/new")
        await ui.send("/agents")
        await ui.until(lambda: isinstance(ui.app.screen, AgentsScreen) and count(ui) == 2)
        assert "agent-tui" in listed(ui.app.screen)[0]
        await ui.pilot.press("home", "enter")
        await ui.until(lambda: ui.runtime.conversation.log.path == copy)


async def test_r_names_ours_only(stage: Stage, home: Path):
    begin(stage, user("fix the parser"), reply("Ok.")).close()
    write_claude(home)
    async with showing(stage, 2) as ui:
        rows = listed(ui.app.screen)
        ours = next(number for number, row in enumerate(rows) if "agent-tui" in row)
        await ui.pilot.press(*["down"] * ours, "r")
        await ui.until(lambda: isinstance(ui.app.screen, LineInputScreen))
        await ui.pilot.press(*"Parser", "enter")
        await ui.until(lambda: isinstance(ui.app.screen, AgentsScreen))
        await ui.until(lambda: any("Parser" in row for row in listed(ui.app.screen)))
        await ui.pilot.press("up" if ours else "down", "r")
        await ui.until(lambda: "Only sessions of agent-tui" in text(ui, "#picker-message"))


async def test_x_ends_the_other_program_after_a_question(stage: Stage):
    log = begin(stage, user("fix the parser"), reply("Ok."))
    log.close()
    assert log.path is not None
    with opened_elsewhere(log.path) as pid:
        async with showing(stage, 1) as ui:
            await ui.pilot.press("x")
            await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
            assert f"pid {pid}" in text(ui, "#choice-facts")
            await ui.pilot.press("n")
            await ui.until(lambda: isinstance(ui.app.screen, AgentsScreen))
            os.kill(pid, 0)
            await ui.pilot.press("x")
            await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
            await ui.pilot.press("y")
            await ui.until(lambda: f"sent to process {pid}" in text(ui, "#picker-message"))
            await ui.until(lambda: f"· process {pid}" not in text(ui, "#picker-message"))
            await ui.pilot.press("x")
            await ui.until(lambda: "No program" in text(ui, "#picker-message"))


async def test_d_shows_the_changes_in_its_folder_and_returns(stage: Stage, tmp_path: Path):
    folder = tmp_path / "other"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "new.py").write_text("x = 1\n")
    begin(stage, user("fix it"), reply("Ok."), cwd=folder).close()
    begin(stage, user("gone"), reply("Ok."), cwd=tmp_path / "gone").close()
    async with showing(stage, 2) as ui:
        rows = listed(ui.app.screen)
        there = next(number for number, row in enumerate(rows) if "fix it" in row)
        await ui.pilot.press(*["down"] * there, "d")
        await ui.until(lambda: isinstance(ui.app.screen, ReviewScreen))
        await ui.pilot.press("escape")
        await ui.until(lambda: isinstance(ui.app.screen, AgentsScreen) and count(ui) == 2)
        await ui.until(lambda: str(folder) in text(ui, "#picker-message"))
        await ui.pilot.press("up" if there else "down", "d")
        await ui.until(lambda: "no longer exists" in text(ui, "#picker-message"))
        git(folder, "add", "new.py")
        git(folder, "commit", "-qm", "new")
        for told in ("Nothing changed in", "no git repository"):
            await ui.pilot.press("home", *["down"] * there, "d")
            await ui.until(
                lambda told=told: (
                    isinstance(ui.app.screen, AgentsScreen)
                    and count(ui) == 2
                    and told in text(ui, "#picker-message")
                )
            )
            shutil.rmtree(folder / ".git", ignore_errors=True)


async def test_a_running_turn_is_not_left(stage: Stage):
    begin(stage, user("fix the parser"), reply("Ok.")).close()
    async with running_app(stage.folder, held("Half"), stage=stage, size=WIDE) as ui:
        await ui.send("go")
        await ui.send("/agents")
        await ui.until(lambda: isinstance(ui.app.screen, AgentsScreen) and count(ui) == 2)
        rows = listed(ui.app.screen)
        assert rows[0].endswith("working")
        await ui.pilot.press("down", "enter")
        await ui.until(lambda: "while the agent works" in ui.notices[-1])
        assert "{" not in ui.notices[-1]
        assert ui.is_running
        ui.let_go()
        await ui.until(lambda: not ui.is_running)


async def test_without_reviews_there_is_no_such_key(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    begin(stage, user("fix the parser"), reply("Ok.")).close()
    monkeypatch.setattr(ReviewPart, "abilities", Part.abilities)
    async with showing(stage, 1) as ui:
        assert "changes" not in text(ui, "#picker-keys")
        await ui.pilot.press("d")
        await ui.until(lambda: "Nothing here shows" in text(ui, "#picker-message"))


async def test_lines_list_and_stop(stage: Stage, home: Path):
    write_claude(home)
    log = begin(stage, user("fix the parser"), reply("Ok."))
    log.close()
    runtime = stage.runtime([])

    async def said(line: str) -> str:
        out, err = io.StringIO(), io.StringIO()
        await print_command(runtime, listed_services(), line, "text", out=out, err=err)
        return out.getvalue() + err.getvalue()

    lines = (await said("/agents")).splitlines()
    assert any("Claude Code" in line and "Mend it. – Mended." in line for line in lines)
    assert lines[-1] == "2 sessions"
    assert (await said("/agents here")).splitlines()[-1] == "1 session"
    assert (await said("/agents needs me")).splitlines() == ["0 sessions"]
    assert "stop ID" in await said("/agents everything")
    assert "No program" in await said(f"/agents stop {log.header.id[:8]}")
    assert "No session of agent-tui" in await said("/agents stop zzzz")
    await runtime.aclose()


def test_the_subcommand_needs_no_screen(stage: Stage):
    code = (
        "import sys, agent_tui.features.agents.shell as shell; shell.run_command([]);"
        "print('textual' in sys.modules)"
    )
    environ = {**os.environ, "AGENT_TUI_SESSION_DIR": str(stage.sessions)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["0 sessions", "False"]
