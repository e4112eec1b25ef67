"""The session picker: order, search, preview, names, the trash, other agents' sessions."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from textual.content import Content
from textual.widgets import Input, Static

from agent_tui.agent.conversation import Conversation
from agent_tui.attachments import earlier_work_block, instructions_block
from agent_tui.cli.folders import worktree_records
from agent_tui.commands import sessions as session_opening
from agent_tui.commands.sessions import SessionsOfProject, age
from agent_tui.events import AgentEvent
from agent_tui.features.session_picker import screen as session_picker
from agent_tui.features.session_picker.screen import SessionPicker
from agent_tui.messages import UserMessage
from agent_tui.sessions.entries import Header, MessageEntry, SessionInfoEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.git.worktree import Worktree
from agent_tui.ui.screens.choice import ChoiceScreen, LineInputScreen
from agent_tui.ui.screens.picker import RowList
from agent_tui.ui.transcript.blocks import UserBlock
from tests.features.helpers.test_worktrees import git
from tests.sessions.importers import recordings
from tests.support.models import MODEL
from tests.support.other_program import opened_elsewhere
from tests.support.runtime import Stage
from tests.support.session_files import summary
from tests.ui.app_support import Ui, asking, listed, running_app
from tests.ui.app_support import answer as reply
from tests.ui.previews import marked_words, painted

WIDE = (130, 40)
"""Room for the preview."""


def put(
    stage: Stage,
    question: str,
    *,
    day: int,
    name: str = "",
    answer: str = "Answer.",
    cwd: Path | None = None,
    parent: Path | None = None,
) -> Path:
    """A session of an earlier day."""
    header = Header(
        cwd=str(cwd or stage.workspace),
        provider=MODEL.provider,
        model_id=MODEL.model_id,
        parent_session=str(parent) if parent else None,
    )
    with SessionStore(stage.sessions).create(header) as log:
        log.append(MessageEntry(message=UserMessage(content=question)))
        log.append(MessageEntry(message=reply(answer)))
        if name:
            log.append(SessionInfoEntry(name=name))
        path = log.path
    assert path is not None
    when = datetime(2026, 3, day, tzinfo=UTC).timestamp()
    os.utime(path, (when, when))
    return path


@asynccontextmanager
async def picking(
    stage: Stage, rows: int, size: tuple[int, int] = (80, 24)
) -> AsyncGenerator[Ui, None]:
    """The app with the picker open and all `rows` in it."""
    async with running_app(stage.folder, stage=stage, size=size) as ui:
        await ui.send("/resume")
        await ui.until(lambda: isinstance(ui.app.screen, SessionPicker))
        await ui.until(lambda: ui.app.screen.query_one(RowList).count == rows)
        yield ui


def titles(ui: Ui) -> list[str]:
    return [line.partition("  ")[0] for line in listed(ui.app.screen)]


async def asked(ui: Ui) -> str:
    """The facts of the question, once it is there and drawn."""
    await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen) and ui.app.screen.is_mounted)
    await ui.drawn()
    return str(ui.app.screen.query_one("#choice-facts", Static).render())


def heading(ui: Ui) -> str:
    return str(ui.app.screen.query_one("#picker-heading", Static).render())


def message(ui: Ui) -> str:
    return str(ui.app.screen.query_one("#picker-message", Static).render())


def preview(ui: Ui) -> str:
    """Facts and the end of the session, as they stand beside the list."""
    facts = str(ui.app.screen.query_one("#picker-preview-text", Static).render())
    return f"{facts}\n{painted(ui)}"


async def test_this_projects_sessions_come_first_and_chains_hang_together(tmp_path: Path):
    stage = Stage(tmp_path)
    first = put(stage, "the long task", day=1)
    put(stage, "another thing", day=2)
    put(stage, "gone on with", day=3, parent=first)
    put(stage, "elsewhere", day=4, cwd=tmp_path / "other")
    async with picking(stage, 4) as ui:
        assert titles(ui) == ["the long task", "└─ gone on with", "another thing", "elsewhere"]
        assert ui.app.screen.query_one(RowList).current == 1


async def test_sessions_of_other_worktrees_are_of_the_project_and_say_what_happens_in_them(
    tmp_path: Path,
):
    stage = Stage(tmp_path)
    there = tmp_path / "shop.worktrees" / "fix"
    put(stage, "elsewhere", day=4, cwd=tmp_path / "other")
    put(stage, "here", day=1)
    waiting = put(stage, "in the worktree", day=2, cwd=there)
    with SessionLog.open(waiting) as log:
        log.note_state("waiting")
        async with running_app(stage.folder, stage=stage, size=WIDE) as ui:
            ui.app.runtime.services.folders_elsewhere = lambda _cwd: (there.parent / "fix",)
            await ui.send("/resume")
            await ui.until(lambda: isinstance(ui.app.screen, SessionPicker))
            await ui.until(lambda: ui.app.screen.query_one(RowList).count == 3)
            first, second, third = listed(ui.app.screen)
            assert first.startswith("in the worktree  (fix)")
            assert "asks you" in first
            assert second.startswith("here")
            assert third.startswith("elsewhere  (other)")
            await ui.until(lambda: "Asks you in another terminal: in the worktree" in message(ui))


async def test_what_was_only_said_is_found_and_shown(tmp_path: Path):
    stage = Stage(tmp_path)
    put(stage, "the parser", day=1, answer="It was the Quuxification of tokens after all.")
    put(stage, "the lexer", day=2)
    async with picking(stage, 2, WIDE) as ui:
        ui.app.screen.query_one(Input).value = "quuxific"
        await ui.until(lambda: titles(ui)[:1] and "the parser" in titles(ui)[0])
        await ui.until(lambda: "Quuxification" in preview(ui))
        ui.app.screen.query_one(Input).value = "nothing like it at all"
        await ui.until(lambda: "Nothing matches" in message(ui))


@pytest.mark.thorough
async def test_a_preview_is_drawn_as_the_chat_draws_it(tmp_path: Path):
    stage = Stage(tmp_path)
    asked = (
        'Why is @a.py slow?\n\n<file path="a.py">\nthe whole parser\n</file>'
        f"\n\n{instructions_block('Be brief about the parser.')}"
        f"\n\n{earlier_work_block(['2026-01-01: the parser'])}"
    )
    put(stage, asked, day=1, answer="# Found\n\nThe **parser** reads `a.py` twice.")
    async with picking(stage, 1, WIDE) as ui:
        assert titles(ui) == ["Why is @a.py slow?"]
        await ui.until(lambda: "reads" in preview(ui))
        shown = preview(ui)
        assert "› Why is @a.py slow?" in " ".join(shown.replace("▌", "›").split())
        assert "The parser reads a.py twice." in shown
        assert not any(mark in shown for mark in ("<", "**", "# ", "`"))
        assert marked_words(ui) == []
        ui.app.screen.query_one(Input).value = "PARSER twice"
        await ui.until(lambda: marked_words(ui))
        assert marked_words(ui) == ["parser", "twice"]


async def test_what_was_said_long_ago_is_quoted_above_the_end(tmp_path: Path):
    stage = Stage(tmp_path)
    path = put(stage, "the parser", day=1, answer="It was the **Quuxification** of tokens.")
    with SessionLog.open(path) as log:
        for number in range(6):
            log.append(MessageEntry(message=UserMessage(content=f"later {number}")))
    async with picking(stage, 1, WIDE) as ui:
        ui.app.screen.query_one(Input).value = "quuxific"
        await ui.until(lambda: marked_words(ui))
        assert "• … It was the Quuxification of tokens." in " ".join(preview(ui).split())
        assert marked_words(ui) == ["Quuxific"]


async def test_a_long_message_is_shown_from_where_the_word_is(tmp_path: Path):
    stage = Stage(tmp_path)
    lines = "\n".join(f"- item {number}" for number in range(60))
    put(stage, "list them", day=1, answer=f"{lines}\n- the needle\n{lines}")
    async with picking(stage, 1, WIDE) as ui:
        await ui.until(lambda: "item 3" in preview(ui))
        assert "needle" not in preview(ui)
        ui.app.screen.query_one(Input).value = "needle"
        await ui.until(lambda: marked_words(ui))
        assert "item 59" in preview(ui)
        assert "item 40" not in preview(ui)


async def test_a_session_is_renamed_in_place(tmp_path: Path):
    stage = Stage(tmp_path)
    path = put(stage, "the parser", day=1)
    async with picking(stage, 1) as ui:
        await ui.pilot.press("ctrl+r")
        await ui.until(lambda: isinstance(ui.app.screen, LineInputScreen))
        await ui.write("parser work")
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, SessionPicker))
        await ui.until(lambda: "parser work" in titles(ui)[0])
    (found,) = SessionStore(stage.sessions).list()
    assert (found.path, found.name) == (path, "parser work")


@pytest.mark.parametrize("key", ["y", "n"])
async def test_a_session_goes_to_the_trash_after_a_yes(tmp_path: Path, key: str):
    stage = Stage(tmp_path)
    put(stage, "the lexer", day=1)
    path = put(stage, "the parser", day=2)
    async with picking(stage, 2) as ui:
        await ui.pilot.press("ctrl+d")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        await ui.pilot.press(key)
        await ui.until(lambda: isinstance(ui.app.screen, SessionPicker))
        left = 1 if key == "y" else 2
        await ui.until(lambda: ui.app.screen.query_one(RowList).count == left)
        assert ("trash" in message(ui)) == (key == "y")
    assert path.exists() == (key == "n")
    assert len(list((tmp_path / "sessions" / "trash").rglob("*.jsonl"))) == (key == "y")


async def test_a_session_that_is_open_elsewhere_is_not_moved(tmp_path: Path):
    stage = Stage(tmp_path)
    path = put(stage, "the parser", day=2)
    with opened_elsewhere(path):
        async with picking(stage, 1) as ui:
            await ui.pilot.press("ctrl+d")
            await asked(ui)
            await ui.pilot.press("y")
            await ui.until(lambda: isinstance(ui.app.screen, SessionPicker))
            await ui.until(lambda: "is open in another" in message(ui))
    assert path.exists()


@pytest.mark.parametrize("key", ["r", "f", "escape"])
async def test_what_is_open_elsewhere_is_opened_as_the_person_says(tmp_path: Path, key: str):
    stage = Stage(tmp_path)
    path = put(stage, "the parser", day=2)
    with opened_elsewhere(path) as pid:
        async with picking(stage, 1) as ui:
            begun = ui.header.id
            await ui.pilot.press("enter")
            facts = await asked(ui)
            assert str(pid) in facts
            assert isinstance(ui.app.screen, ChoiceScreen)
            ui.app.screen._quiet_s = 60.0  # however slowly the keys come
            await ui.pilot.press("enter")  # answers nothing
            assert isinstance(ui.app.screen, ChoiceScreen)
            await ui.pilot.press(key)
            await ui.until(lambda: not isinstance(ui.app.screen, ChoiceScreen))
            await ui.settle()
            if key == "escape":
                assert ui.header.id == begun
                return
            await ui.until(lambda: UserBlock("the parser") in ui.blocks)
            await ui.settle()
            assert (ui.path == path) is (key == "r")
            assert ui.status.badge == ("read-only" if key == "r" else "")
            assert ui.header.parent_session == (None if key == "r" else str(path))


@pytest.mark.parametrize("key", ["c", "f"])
async def test_a_session_whose_folder_is_gone_goes_on_here(tmp_path: Path, key: str):
    stage = Stage(tmp_path)
    path = put(stage, "the parser", day=2, cwd=tmp_path / "gone")
    async with picking(stage, 1) as ui:
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        await ui.pilot.press(key)
        await ui.until(lambda: UserBlock("the parser") in ui.blocks)
        await ui.settle()
        assert (ui.path == path) is (key == "c")
        assert ui.runtime.conversation.cwd == stage.workspace


async def test_how_to_return_to_a_removed_worktree_is_said_before_the_user_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    stage = Stage(tmp_path.resolve())
    top = stage.workspace
    git(top, "init", "-q", "-b", "main", "--template=")
    git(top, "commit", "-q", "--allow-empty", "-m", "one")
    git(top, "branch", "fix")
    place = stage.folder / "workspace.worktrees" / "fix"
    worktree_records().store(Worktree("fix", place, top, "fix", "main", "", True), "kept")
    put(stage, "the parser", day=2, cwd=place)
    async with picking(stage, 1) as ui:
        await ui.pilot.press("enter")
        facts = await asked(ui)
        assert f"It worked in {place}." in facts
        assert "Its worktree fix was removed; its branch stays. " in facts
        assert f"cd {top} && agent-tui --worktree fix -r " in facts


async def test_another_agents_session_is_gone_on_with_in_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    theirs = tmp_path / "claude" / "projects" / "p" / "0f.jsonl"
    theirs.parent.mkdir(parents=True)
    said = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "s",
        "isSidechain": False,
    }
    line = said | {
        "cwd": str(tmp_path / "workspace"),
        "timestamp": "2026-03-01T10:00:00.000Z",
        "message": {"role": "user", "content": "asked of another agent"},
    }
    theirs.write_text(json.dumps(line) + "\n", encoding="utf-8")
    before = theirs.read_bytes()
    for variable in ("PI_CODING_AGENT_DIR", "CODEX_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "none"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    stage = Stage(tmp_path)
    async with picking(stage, 0) as ui:
        await ui.pilot.press("ctrl+o")
        await ui.until(lambda: ui.app.screen.query_one(RowList).count == 1)
        assert "Claude Code" in listed(ui.app.screen)[0]
        columns = str(ui.app.screen.query_one("#picker-columns", Static).render())
        assert columns.split() == ["agent", "size", "age"]
        await ui.pilot.press("enter")
        await ui.until(lambda: UserBlock("asked of another agent") in ui.blocks)
        await ui.until(lambda: any("Imported from another agent" in text for text in ui.notices))
    assert theirs.read_bytes() == before
    assert ui.path.is_relative_to(tmp_path / "sessions")


async def test_a_session_in_a_database_of_another_agent_is_shown_and_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    place = recordings.opencode(tmp_path / "home", str(tmp_path / "workspace"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home/.local/share"))
    async with running_app(tmp_path) as ui:
        await ui.send("/resume --from opencode")
        await ui.until(lambda: isinstance(ui.app.screen, SessionPicker))
        await ui.until(lambda: ui.app.screen.query_one(RowList).count == 1)
        assert "Greeting of the program" in listed(ui.app.screen)[0]
        await ui.pilot.press("enter")
        await ui.until(lambda: UserBlock("Please follow plan gamma") in ui.blocks)
        await ui.until(lambda: any("Imported from another agent" in text for text in ui.notices))
        first = ui.path
        await ui.send(f"/resume {place}")
        await ui.until(lambda: ui.path != first)
    assert ui.path.is_relative_to(tmp_path / "sessions")


async def test_an_agent_that_is_named_is_in_the_heading(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/resume --from codex")
        await ui.until(lambda: isinstance(ui.app.screen, SessionPicker))
        await ui.until(lambda: "another agent" in heading(ui))
        assert "copy" in str(ui.app.screen.query_one("#picker-keys", Static).render())


async def test_a_session_that_takes_long_to_read_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stage, is_read = Stage(tmp_path), asyncio.Event()
    path = put(stage, "a long one", day=1)
    runtime = asking(stage)
    really_open = runtime.sessions.open

    async def slow(*arguments: Any, **more: Any) -> tuple[AgentEvent, ...]:
        await is_read.wait()
        return await really_open(*arguments, **more)

    monkeypatch.setattr(runtime.sessions, "open", slow)
    monkeypatch.setattr(session_opening, "_LONG_S", 0)
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.submit(f"/resume {path}")
        await ui.until(lambda: any("Reading the session" in text for text in ui.notices))
        is_read.set()
        await ui.until(lambda: UserBlock("a long one") in ui.blocks)
        assert not any("Reading the session" in text for text in ui.notices)


async def test_a_session_is_shown_before_its_context_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stage, may_count = Stage(tmp_path), asyncio.Event()
    path = put(stage, "a long one", day=1)
    really_count = Conversation.refresh_usage
    async with running_app(tmp_path, stage=stage) as ui:

        async def slow(conversation: Conversation) -> tuple[AgentEvent, ...]:
            await may_count.wait()
            return await really_count(conversation)

        monkeypatch.setattr(Conversation, "refresh_usage", slow)
        await ui.submit(f"/resume {path}")
        await ui.until(lambda: UserBlock("a long one") in ui.blocks)
        assert ui.usage.used == 0
        may_count.set()
        await ui.settle()
        assert ui.usage.used > 0


async def test_only_known_agents_can_be_named(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/resume --from elsewhere")
        await ui.until(lambda: ui.notices)
        assert "pi, claude, codex" in ui.notices[-1]


async def test_a_bad_session_hides_no_other(tmp_path: Path):
    stage = Stage(tmp_path)
    good = put(stage, "the parser", day=2)
    (good.parent / "broken.jsonl").write_bytes(b"\x00\xff{]" * 100)
    async with picking(stage, 1) as ui:
        assert "the parser" in titles(ui)[0]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(5, "now"), (400, "6m"), (7_200, "2h"), (200_000, "2d"), (2_000_000, "2026-02-05")],
)
def test_ages_are_short(seconds: int, shown: str):
    now = datetime(2026, 2, 28, 12, tzinfo=UTC)
    then = datetime.fromtimestamp(now.timestamp() - seconds, UTC)
    assert age(then, now) == shown


@pytest.mark.thorough
async def test_a_picker_that_is_left_while_a_session_is_read_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stage = Stage(tmp_path)
    put(stage, "the parser", day=1)
    is_read = asyncio.Event()
    loop = asyncio.get_running_loop()

    def read_late(*_picked: object) -> Content:
        asyncio.run_coroutine_threadsafe(is_read.wait(), loop).result()
        return Content("its end")

    monkeypatch.setattr(session_picker, "_read_end", read_late)
    async with picking(stage, 1) as ui:
        picker = ui.app.screen
        assert isinstance(picker, SessionPicker)
        late = asyncio.create_task(picker._show_end(picker._shown[0]))
        await ui.pilot.press("escape")
        await ui.until(lambda: not isinstance(ui.app.screen, SessionPicker))
        is_read.set()
        await late


async def test_files_that_cannot_be_read_are_told(tmp_path: Path):
    stage = Stage(tmp_path)
    path = put(stage, "the parser", day=1)
    (path.parent / "bad.jsonl").write_text("nothing\n")
    async with picking(stage, 1) as ui:
        await ui.until(lambda: "bad.jsonl: it contains no session" in message(ui))


def test_a_tour_is_not_of_the_folder_that_it_was_started_in():
    started = replace(summary("s"), cwd=Path("/scratch"), launch_cwd=Path("/w"))
    project = SessionsOfProject(Path("/w"))
    assert project.has(started)
    assert not project.has(replace(started, origin="tour"))
