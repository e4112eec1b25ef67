"""What was said before a compaction stays above, dimmed, and can be gone back to."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.widgets import Static

from agent_tui.features.tree.screen import TreeScreen
from agent_tui.sessions.lineage import chain
from agent_tui.sessions.store import SessionStore
from agent_tui.ui.chat import history_blocks as earlier_chat
from agent_tui.ui.transcript.blocks import NoticeBlock, SummaryBlock, UserBlock
from tests.support.runtime import Stage
from tests.support.session_chain import MESSAGES, begun, write_chain
from tests.ui.app_support import Ui, running_app


@asynccontextmanager
async def at_end_of_chain(root: Path, sessions: int = 3) -> AsyncGenerator[Ui]:
    stage = Stage(root)
    path = write_chain(stage.sessions, stage.workspace, sessions)
    runtime = stage.runtime([])
    await runtime.sessions.open(str(path))
    async with running_app(root, stage=stage, runtime=runtime) as ui:
        ui.redraw()
        await ui.settle()
        yield ui


def asked(ui: Ui) -> list[str]:
    return [block.text for block in ui.blocks if isinstance(block, UserBlock)]


def dimmed(ui: Ui) -> list[str]:
    items = list(ui.chat._stack)  # pyright: ignore[reportPrivateUsage]
    return [i.block.text for i in items if i.is_past and isinstance(i.block, UserBlock)]


def row_on_top(ui: Ui) -> str:
    return ui.chat.render_line(0).text.strip()


async def scroll_up(ui: Ui, first: str) -> None:
    """Until the message `first` is loaded."""
    for _ in range(500):
        if first in asked(ui):
            return
        ui.chat.action_page_up()
        await ui.pilot.pause()
    raise AssertionError(f"{first} never came; the first is {asked(ui)[0]}")


async def test_earlier_sessions_are_read_one_by_one_when_one_scrolls_up_to_them(tmp_path: Path):
    async with at_end_of_chain(tmp_path) as ui:
        assert asked(ui)[0] == "q2-24", "what it kept, and nothing before it"
        assert not dimmed(ui)
        await scroll_up(ui, "q2-0")
        assert "q1-0" not in asked(ui), "the first session is not read yet"
        assert dimmed(ui) == ["q1-24", *(f"q2-{n}" for n in range(24))]
        await scroll_up(ui, "q1-0")
        every = [f"q{s}-{n}" for s in (1, 2, 3) for n in range(MESSAGES)]
        assert asked(ui) == every, "each message once, in the order it was said"
        assert dimmed(ui) == every[: 2 * MESSAGES - 1]
        summaries = [i for i, block in enumerate(ui.blocks) if isinstance(block, SummaryBlock)]
        assert len(summaries) == 2
        before = ui.blocks[summaries[0] - 2]
        assert isinstance(before, UserBlock)
        assert before.text == "q1-24", "the divider stands where it was compacted"


async def test_no_earlier_session_is_read_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    read: list[Path] = []
    monkeypatch.setattr(chain, "read_session_at", lambda path, _store: read.append(path))
    async with at_end_of_chain(tmp_path) as ui:
        assert asked(ui)[-1] == "q3-24"
        assert read == []
        for _ in range(500):
            if read:
                break
            ui.chat.action_page_up()
            await ui.pilot.pause()
        assert read == [Path(ui.runtime.conversation.log.header.parent_session or "")]


async def test_what_is_on_the_screen_stays_there_while_earlier_talk_is_put_above(tmp_path: Path):
    async with at_end_of_chain(tmp_path) as ui:
        while "q2-0" not in asked(ui):
            ui.chat.action_page_up()
            seen = row_on_top(ui)
            await ui.pilot.pause()
            await ui.settle()
            assert row_on_top(ui) == seen


async def test_a_short_session_shows_at_once_what_was_before_it(tmp_path: Path):
    stage = Stage(tmp_path)
    path = write_chain(stage.sessions, stage.workspace, 1)
    store = SessionStore(stage.sessions)
    with store.open(str(path), stage.workspace) as log:
        child = store.create_child(log, (begun(2),), None)
    child.close()
    runtime = stage.runtime([])
    await runtime.sessions.open(str(child.path))
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        ui.redraw()
        await ui.until(lambda: "q1-0" in asked(ui))
        assert dimmed(ui)[-1] == "q1-24"
        assert ui.chat.is_following
        assert isinstance(ui.blocks[-1], SummaryBlock)


async def test_at_the_end_again_much_that_was_put_above_is_let_go_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(earlier_chat, "_MOST_BLOCKS", 10)
    async with at_end_of_chain(tmp_path) as ui:
        await scroll_up(ui, "q2-0")
        ui.chat.follow_end()
        await ui.until(lambda: "q2-0" not in asked(ui))
        assert asked(ui)[0] == "q2-24"
        await scroll_up(ui, "q2-0")


@pytest.mark.thorough
async def test_an_earlier_session_that_is_gone_is_said_where_it_would_be(tmp_path: Path):
    async with at_end_of_chain(tmp_path) as ui:
        gone = Path(ui.runtime.conversation.log.header.parent_session or "")
        gone.unlink()
        for _ in range(100):
            ui.chat.action_page_up()
            await ui.pilot.pause()
        first = ui.blocks[0]
        assert isinstance(first, NoticeBlock)
        assert first.text.endswith(f"is gone or cannot be read: {gone}")
        await ui.submit("/tree")
        await ui.until(lambda: isinstance(ui.app.screen, TreeScreen))
        message = ui.app.screen.query_one("#picker-message", Static)
        await ui.until(lambda: str(message.render()) == first.text)
        assert message.display
        await ui.pilot.press("escape")
        for _ in range(MESSAGES + 1):
            await ui.write("/undo")
            await ui.pilot.press("enter")
            await ui.settle()
        assert ui.text == "q2-24", "what was kept was gone through"
        await ui.send("/undo")
        assert ui.notices[-1] == first.text


async def test_what_is_read_for_a_session_that_was_left_meanwhile_is_not_shown(
    tmp_path: Path,
):
    async with at_end_of_chain(tmp_path) as ui:
        reading = ui.app.view.earlier.load()
        await ui.send("/new")
        await reading
        await ui.settle()
        assert not asked(ui)


async def test_the_tree_shows_the_whole_chain_and_going_to_a_message_opens_its_session(
    tmp_path: Path,
):
    async with at_end_of_chain(tmp_path) as ui:
        left = ui.runtime.conversation.log.header.id
        await ui.submit("/tree")
        await ui.until(lambda: isinstance(ui.app.screen, TreeScreen))
        screen = ui.app.screen
        assert isinstance(screen, TreeScreen)
        await ui.until(lambda: len(screen.tree_rows) == 3 * MESSAGES + 2)
        assert screen.tree_rows[0].title == "q1-0"
        assert [row.title for row in screen.tree_rows if row.is_here] == ["q3-24"]
        screen._list.move_to(5)
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.text == "q1-5")
        assert not ui.app.prompt.area.selected_text
        assert asked(ui)[-1] == "q1-4"
        assert not dimmed(ui), "it is the conversation again"
        assert left[:8] in ui.notices[-1]


async def test_undo_typed_behind_the_returned_text_is_the_command(tmp_path: Path):
    async with at_end_of_chain(tmp_path) as ui:
        for text in ("q3-24", "q3-23", "q3-22"):
            await ui.write("/undo")
            await ui.pilot.press("enter")
            await ui.until(lambda text=text: ui.text == text)
        await ui.write("x")
        assert ui.text == "q3-22x", "what is typed replaces nothing"


async def test_a_refusal_that_is_said_again_stands_once_at_the_end(tmp_path: Path):
    async with at_end_of_chain(tmp_path, 1) as ui:
        for _ in range(3):
            await ui.send("/uncompact")
        await ui.send("/nothing-of-that-name")
        await ui.send("/uncompact")
        refused = "Nothing to undo: this conversation was not compacted."
        assert ui.notices.count(refused) == 1
        assert ui.notices[-1] == refused
