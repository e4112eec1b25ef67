"""Going back in the tree: every key of the screen, Esc Esc, and what happens to the draft."""

from base64 import b64encode
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.features.tree.branches import Branches
from agent_tui.features.tree.rows import MessageTree, TreeRow
from agent_tui.features.tree.screen import TreeScreen, preview_blocks, preview_head, row_content
from agent_tui.messages import AssistantMessage, ImageContent, TextContent, UserMessage
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.lineage.joined import labels_of
from agent_tui.ui.controller import GO_BACK_WITHIN_S
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.screens.picker import RowList
from agent_tui.ui.screens.session_preview import preview_lines
from agent_tui.ui.theme.palette import make_palette
from agent_tui.ui.transcript.blocks import SummaryBlock, UserBlock
from tests.support.compaction_ways import SUMMARY
from tests.support.images import png
from tests.support.other_program import opened_elsewhere
from tests.support.runtime import Stage
from tests.support.session_values import result
from tests.ui.app_support import Ui, answer, asking, held, running_app, said
from tests.ui.previews import marked_words, painted
from tests.ui.scenes import StillClock

Open = Callable[..., AbstractAsyncContextManager[Ui]]


def spoken(stage: Stage, texts: Iterable[str], *replies: Reply) -> AgentRuntime:
    """A conversation in which `texts` were said and answered; `replies` are still to come."""
    runtime = asking(stage, *replies)
    for text in texts:
        said(runtime, UserMessage(content=text), answer(f"An answer to {text}."))
    return runtime


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """The app over a conversation with three messages; it is given what the model answers."""
    stage = Stage(tmp_path)

    def with_replies(*replies: Reply, **options: Any) -> AbstractAsyncContextManager[Ui]:
        runtime = spoken(stage, ("one", "two", "three"), *replies)
        given = {"clock": StillClock(), "history_file": tmp_path / "history.jsonl", **options}
        return running_app(tmp_path, *replies, stage=stage, runtime=runtime, **given)

    return with_replies


async def open_tree(ui: Ui) -> TreeScreen:
    await ui.send("/tree")
    return await shown_tree(ui)


async def shown_tree(ui: Ui) -> TreeScreen:
    await ui.until(lambda: isinstance(ui.app.screen, TreeScreen))
    await ui.until(lambda: tree_rows(ui.app.screen))
    await ui.settle()
    assert isinstance(ui.app.screen, TreeScreen)
    return ui.app.screen


def tree_rows(screen: Screen[Any]) -> list[TreeRow]:
    """What is shown."""
    assert isinstance(screen, TreeScreen)
    return screen.tree_rows


def titles(screen: TreeScreen) -> list[str]:
    return [row.title for row in tree_rows(screen)]


def current(screen: TreeScreen) -> str:
    rows, at = tree_rows(screen), screen.query_one(RowList).current
    row = rows[at] if rows else None
    return row.title if row is not None else ""


def hint(screen: TreeScreen) -> str:
    return str(screen.query_one("#picker-keys").render())


def ids(runtime: AgentRuntime) -> dict[str, str]:
    """The entries of what the person said."""
    return {
        entry.message.text: entry.id
        for entry in runtime.conversation.log.entries
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
    }


async def test_enter_goes_back_and_the_message_is_in_the_prompt_again(opened: Open):
    async with opened() as ui:
        screen = await open_tree(ui)
        assert titles(screen) == ["one", "two", "three"]
        assert current(screen) == "three", "it begins where the conversation is"
        await ui.pilot.press("up", "enter")
        await ui.until(lambda: ui.text == "two")
        assert ui.sent == ["one"]
        shown = [block.text for block in ui.blocks if isinstance(block, UserBlock)]
        assert shown == ["one"], "the chat shows the conversation up to there"


async def test_what_stood_in_the_prompt_goes_into_the_history(opened: Open):
    async with opened() as ui:
        await ui.write("half a thought")
        await ui.pilot.press("escape", "escape")
        await shown_tree(ui)
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.text == "three")
        await ui.pilot.press("up")
        await ui.until(lambda: ui.text == "half a thought")


async def test_esc_leaves_the_tree_and_the_draft_as_they_were(opened: Open):
    async with opened() as ui:
        await ui.write("half a thought")
        await ui.pilot.press("escape", "escape")
        await shown_tree(ui)
        await ui.pilot.press("escape")
        await ui.settle()
        assert not isinstance(ui.app.screen, TreeScreen)
        assert ui.text == "half a thought"
        assert ui.sent == ["one", "two", "three"]


async def test_one_esc_or_two_slow_ones_or_one_before_typing_show_no_tree(opened: Open):
    clock = StillClock()
    async with opened(clock=clock) as ui:
        await ui.pilot.press("escape")
        clock.now += GO_BACK_WITHIN_S + 0.1
        await ui.pilot.press("escape")
        await ui.write("a")
        await ui.pilot.press("escape")
        await ui.settle()
        assert not isinstance(ui.app.screen, TreeScreen)
        assert ui.text == "a"
        await ui.pilot.press("escape")
        await shown_tree(ui)


async def test_esc_that_closes_the_menu_or_stops_a_turn_is_not_the_first_of_two(opened: Open):
    async with opened(held()) as ui:
        await ui.write("/co")
        await ui.until(lambda: ui.app.prompt.menu.is_open)
        await ui.pilot.press("escape", "escape")
        await ui.settle()
        assert not isinstance(ui.app.screen, TreeScreen)
        await ui.send("go")
        assert ui.is_running
        await ui.pilot.press("escape")
        await ui.settle()
        assert not ui.is_running
        await ui.pilot.press("escape")
        await ui.settle()
        assert not isinstance(ui.app.screen, TreeScreen)


async def test_in_an_empty_conversation_there_is_nothing_to_go_back_to(tmp_path: Path):
    async with running_app(tmp_path, clock=StillClock()) as ui:
        await ui.pilot.press("escape", "escape")
        await ui.settle()
        assert not isinstance(ui.app.screen, TreeScreen)
        await ui.send("/tree")
        assert ui.notices == ["Nothing to go back to yet."]


async def test_the_tree_waits_for_the_end_of_a_turn(opened: Open):
    async with opened(held()) as ui:
        await ui.send("go")
        for command, refusal in (("/tree", "Cannot go back"), ("/fork", "Cannot fork")):
            await ui.send(command)
            assert ui.notices[-1].startswith(refusal)
        assert not isinstance(ui.app.screen, TreeScreen)


@pytest.mark.thorough
async def test_f_forks_from_a_message(opened: Open):
    async with opened() as ui:
        before = ui.path
        await open_tree(ui)
        await ui.pilot.press("up", "f")
        await ui.until(lambda: ui.text == "two")
        assert ui.sent == ["one"]
        assert ui.path != before


async def test_the_fork_command_forks_from_here(opened: Open):
    async with opened() as ui:
        before = ui.path
        await ui.send("/fork")
        assert ui.sent == ["one", "two", "three"]
        assert ui.path != before


async def test_s_goes_back_with_a_summary_that_can_be_watched_and_stopped(opened: Open):
    async with opened(held(SUMMARY)) as ui:
        await open_tree(ui)
        await ui.pilot.press("up", "s")
        await ui.until(lambda: ui.is_running)
        await ui.settle()
        state = ui.activity.state
        assert state is not None
        assert state.label == "Leaving the branch: summarising"
        assert state.output_chars == len(SUMMARY)
        await ui.pilot.press("escape")
        await ui.settle()
        assert not ui.is_running
        assert "ancelled" in ui.notices[-1]
        assert ui.text == ""
        assert ui.sent == ["one", "two", "three"]


async def test_the_message_comes_into_the_prompt_when_the_summary_is_done(opened: Open):
    async with opened(held(SUMMARY)) as ui:
        image = ImageContent(data=b64encode(png(8, 6)).decode(), mime_type="image/png")
        content = (TextContent(text="four"), image, image)
        said(ui.runtime, UserMessage(content=content), answer("An answer to four."))
        await open_tree(ui)
        await ui.pilot.press("s")
        await ui.until(lambda: ui.is_running)
        await ui.settle()
        await ui.finish()
        assert ui.text == "four"
        assert ui.sent == ["one", "two", "three"]
        assert [block.summary for block in ui.blocks if isinstance(block, SummaryBlock)]
        assert ui.notices == ["The message's images (2) are not put back into the prompt."]


async def test_l_labels_a_message_and_an_empty_label_takes_it_off(opened: Open):
    async with opened() as ui:
        screen = await open_tree(ui)
        await ui.pilot.press("up", "l")
        await ui.until(lambda: ui.app.screen.query("#line-text"))
        await ui.write("the turn")
        await ui.pilot.press("enter")
        await ui.until(lambda: labels_of(ui.runtime.conversation.log.entries))
        assert labels_of(ui.runtime.conversation.log.entries) == {
            ids(ui.runtime)["two"]: "the turn"
        }
        await ui.until(lambda: any(row.label for row in tree_rows(screen)))
        assert current(screen) == "two"
        await ui.pilot.press("l")
        await ui.until(lambda: ui.app.screen.query("#line-text"))
        await ui.pilot.press(*["backspace"] * 8, "enter")
        await ui.until(lambda: not labels_of(ui.runtime.conversation.log.entries))


async def test_m_keeps_a_message_or_leaves_it_out_and_takes_that_back(opened: Open):
    def texts(ui: Ui) -> list[str]:
        return [item.message.text for item in ui.runtime.conversation.context().messages]

    def marks(screen: TreeScreen) -> list[str | None]:
        return [row.mark for row in tree_rows(screen) if row.mark]

    async with opened() as ui:
        screen = await open_tree(ui)
        await ui.pilot.press("up")
        before = texts(ui)
        for letter, mark, has_gone in (
            ("d", "drop", True),
            ("e", "pin", False),
            ("c", None, False),
        ):
            await ui.pilot.press("m")
            await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
            await ui.pilot.press(letter)
            await ui.until(lambda wanted=mark: marks(screen) == ([wanted] if wanted else []))
            assert current(screen) == "two"
            assert ("two" not in texts(ui)) == has_gone
        assert texts(ui) == before


async def test_esc_leaves_a_label_as_it_is(opened: Open):
    async with opened() as ui:
        await open_tree(ui)
        await ui.pilot.press("l")
        await ui.until(lambda: ui.app.screen.query("#line-text"))
        await ui.write("unsaid")
        await ui.pilot.press("escape")
        await ui.settle()
        assert isinstance(ui.app.screen, TreeScreen)
        assert labels_of(ui.runtime.conversation.log.entries) == {}


async def test_a_label_that_cannot_be_written_is_said(opened: Open, monkeypatch):
    async with opened() as ui:
        ui.runtime.conversation.log.close()
        await open_tree(ui)
        await ui.pilot.press("l")
        await ui.until(lambda: ui.app.screen.query("#line-text"))
        await ui.write("x")
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.toasts)
        assert "is closed" in ui.toasts[0]


async def test_t_shows_everything_and_again_only_what_one_goes_back_to(opened: Open):
    async with opened() as ui:
        screen = await open_tree(ui)
        assert "t all" in hint(screen)
        await ui.pilot.press("t")
        await ui.until(lambda: len(titles(screen)) == 6)
        assert current(screen) == "three", "the current row stays"
        assert "t less" in hint(screen)
        await ui.pilot.press("t")
        await ui.until(lambda: len(titles(screen)) == 3)


async def test_a_slash_searches_and_esc_ends_the_search_first(opened: Open):
    async with opened() as ui:
        screen = await open_tree(ui)
        await ui.pilot.press("slash")
        await ui.write("t")
        await ui.until(lambda: titles(screen) == ["two", "three"])
        await ui.write("wo")
        await ui.until(lambda: titles(screen) == ["two"])
        assert "esc end the search" in hint(screen)
        await ui.pilot.press("escape")
        await ui.until(lambda: len(titles(screen)) == 3)
        assert isinstance(ui.app.screen, TreeScreen)
        assert current(screen) == "two", "what was found is the current row"
        assert "s summarise" in hint(screen)
        await ui.pilot.press("slash")
        await ui.write("nothing")
        await ui.until(lambda: not titles(screen))
        assert str(screen.query_one("#picker-message").render()) == "Nothing matches 'nothing'."
        await ui.pilot.press("enter")
        assert isinstance(ui.app.screen, TreeScreen)


async def test_enter_in_the_search_goes_back_to_what_was_found(opened: Open):
    async with opened() as ui:
        screen = await open_tree(ui)
        await ui.pilot.press("slash")
        await ui.write("one")
        await ui.until(lambda: titles(screen) == ["one"])
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.text == "one")


async def test_arrows_pages_home_and_end_move(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = spoken(stage, (f"message {number}" for number in range(40)))
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        screen = await open_tree(ui)
        rows = screen.query_one(RowList)
        assert rows.scroll_offset.y + rows.size.height >= 40, "the current row is in sight"
        for key, title in (
            ("pageup", "message 31"),
            ("home", "message 0"),
            ("up", "message 0"),
            ("pagedown", "message 8"),
            ("down", "message 9"),
            ("end", "message 39"),
        ):
            await ui.pilot.press(key)
            assert current(screen) == title
        await ui.settle()
        assert rows.scroll_offset.y > 0


async def test_a_click_moves_there_and_a_second_one_goes_back(opened: Open):
    async with opened() as ui:
        screen = await open_tree(ui)
        await ui.pilot.click(RowList, offset=(5, 0))
        assert current(screen) == "one"
        await ui.pilot.click(RowList, offset=(5, 0))
        await ui.until(lambda: ui.text == "one")


async def test_the_preview_shows_the_message_and_its_answer(opened: Open):
    async with opened(size=(120, 40)) as ui:
        screen = await open_tree(ui)
        assert str(screen.query_one("#picker-preview-text").render()) == "you"
        shown = painted(ui)
        assert "three" in shown
        assert "An answer to three." in shown


async def test_the_preview_is_drawn_as_the_chat_and_marks_what_is_searched(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = asking(stage)
    asked = 'Why is @a.py slow?\n\n<file path="a.py">\nthe parser\n</file>'
    said(runtime, UserMessage(content=asked), answer("# Found\n\nThe **parser** reads `a.py`."))
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(120, 40)) as ui:
        await open_tree(ui)
        assert "Why is @a.py slow?" in painted(ui)
        assert "The parser reads a.py." in painted(ui)
        assert not any(sign in painted(ui) for sign in ("<file", "**", "# ", "`"))
        await ui.write("/slow")
        await ui.until(lambda: marked_words(ui) == ["slow"])


async def test_every_kind_of_message_has_a_preview(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = asking(stage)
    used = AssistantMessage(content=(call("c1", "bash", command="cat src/__init__.py"),))
    said(runtime, UserMessage(content="look"), used, result("c1", "It is\n**empty**.", "bash"))
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(120, 40)) as ui:
        screen = await open_tree(ui)
        await ui.pilot.press("t")
        await ui.until(lambda: len(tree_rows(screen)) == 3)
        await ui.pilot.press("end")
        await ui.settle()
        assert "**empty**." in painted(ui)
        await ui.pilot.press("up")
        await ui.settle()
        assert "bash cat src/__init__" in painted(ui)
        assert "**empty**." in painted(ui)
        assert "cancelled" not in painted(ui)


async def test_control_characters_of_a_message_and_a_label_stay_off_the_screen(tmp_path: Path):
    runtime = spoken(Stage(tmp_path), ["\x1b]0;title\x07 bad"])
    await Branches(runtime).label(ids(runtime)["\x1b]0;title\x07 bad"], "l\x1b[31m")
    tree = MessageTree(runtime.conversation.log.entries, runtime.conversation.log.leaf_id)
    (row,) = tree.rows()
    assert "\x1b" not in row_content(row, 60).plain
    assert "\x1b" not in preview_head(row)
    palette = make_palette(BUILTIN_THEMES["textual-dark"].to_color_system().generate(), ansi=False)
    lines = preview_lines(preview_blocks(row, tree), "bad", 60, palette)
    assert lines
    assert "\x1b" not in "".join(line.text for line in lines)
    assert row_content(row, 60).cell_length == 60


@pytest.mark.thorough
async def test_a_read_only_session_says_so_and_keeps_what_is_sent(tmp_path: Path):
    stage = Stage(tmp_path)
    earlier = spoken(stage, ["one"])
    path = earlier.conversation.log.path
    await earlier.aclose()
    assert path is not None
    with opened_elsewhere(path):
        await see_read_only(stage, path)


async def see_read_only(stage: Stage, path: Path) -> None:
    async with running_app(stage.folder, stage=stage) as ui:
        await ui.submit(f"/resume {path}")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        await ui.pilot.press("r")
        await ui.until(lambda: UserBlock("one") in ui.blocks)
        await ui.settle()
        assert ui.status.badge == "read-only"
        for text in ("hello", "!ls"):
            await ui.send(text)
            assert ui.text.startswith(text)
            assert "/fork continues in a copy" in ui.notices[-1]
            ui.app.prompt.clear()
        await ui.send("/name other")
        assert "is open read-only" in ui.notices[-1]
        assert ui.sent == ["one"]
