import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    BashBlock,
    Block,
    NoticeBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
)
from agent_tui.ui.transcript.view import Transcript
from tests.ui.app_support import wait_until

DIFF = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n"


class ChatApp(App[None]):
    CSS = "Screen { layout: vertical; }"

    def __init__(self) -> None:
        super().__init__()
        self.follow: list[tuple[bool, int]] = []

    def compose(self) -> ComposeResult:
        yield Transcript()

    @property
    def chat(self) -> Transcript:
        return self.query_one(Transcript)

    def on_stack_view_follow_changed(self, message: Transcript.FollowChanged) -> None:
        self.follow.append((message.following, message.new_count))

    def screen_rows(self) -> list[str]:
        return [self.chat.render_line(y).text.rstrip() for y in range(self.chat.size.height)]


def turns(count: int) -> list[Block]:
    blocks: list[Block] = []
    for number in range(count):
        blocks += [
            UserBlock(f"question {number}"),
            AssistantBlock(f"answer {number} " + "with several words " * 12),
            ToolBlock(
                f"c{number}", "read", f"read file{number}.py", "ok", "x\ny", summary="2 lines"
            ),
        ]
    return blocks


async def idle(pilot: Pilot[None]) -> None:
    """Wait until every block has its exact height."""
    stack = pilot.app.query_one(Transcript)._stack

    def is_drawn() -> bool:
        return all(item.is_measured for item in stack)

    await pilot.pause(0.01)
    await wait_until(pilot, is_drawn, lambda: "drawing ahead never ended")


@pytest.fixture
async def pilot():
    async with ChatApp().run_test(size=(60, 20)) as pilot:
        yield pilot


def app_of(pilot: Pilot[None]) -> ChatApp:
    assert isinstance(pilot.app, ChatApp)
    return pilot.app


async def test_blocks_read_well(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load(
        [
            UserBlock("fix d[key] and [/foo]"),
            ThinkingBlock("a\nb"),
            AssistantBlock("Sure, **now**."),
            ToolBlock("1", "read", "read a.py", "ok", "x", summary="1 line"),
            ToolBlock("2", "edit", "edit a.py", "ok", diff=DIFF, elapsed_s=2.0),
        ]
    )
    await pilot.pause()
    assert app.screen_rows()[:16] == [
        "",
        " ▌ fix d[key] and [/foo]",
        "",
        " ◇ Thought 2 lines",
        "",
        "   Sure, now.",
        "",
        " ● read a.py  1 line",
        " ● edit a.py  +2 -1  2.0s",
        "   1   one",
        "   2 - two",
        "   2 + 2",
        "   3 + 3",
        "",
        "",
        "",
    ]


async def test_a_loaded_conversation_shows_its_end(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load(turns(200))
    await pilot.pause()
    assert app.screen_rows()[-2] == " ● read file199.py  2 lines"
    assert app.chat.is_following
    await idle(pilot)
    assert app.screen_rows()[-2] == " ● read file199.py  2 lines"


async def test_only_blocks_near_the_screen_are_drawn_at_once(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load(turns(200))
    assert sum(item.is_measured for item in app.chat._stack) < 30


async def test_following_ends_with_any_scroll_up_and_begins_again_at_the_end(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load(turns(20))
    await idle(pilot)
    app.chat.scroll_up(animate=False)
    await idle(pilot)
    assert not app.chat.is_following
    before = app.screen_rows()
    app.chat.append(NoticeBlock("info", "news"))
    app.chat.append(NoticeBlock("info", "more news"))
    await pilot.pause()
    assert app.screen_rows() == before
    app.chat.follow_end()
    await pilot.pause()
    assert app.chat.is_following
    assert app.screen_rows()[-2] == " • more news"
    assert app.follow == [(False, 0), (False, 1), (False, 2), (True, 0)]


async def test_the_wheel_stops_following_too(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load(turns(20))
    await idle(pilot)
    await pilot._post_mouse_events([events.MouseScrollUp], app.chat)
    await pilot.pause()
    assert not app.chat.is_following


async def test_nothing_moves_while_heights_above_become_exact(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load(turns(300))
    timer = app.chat._idle_timer
    assert timer is not None
    timer.pause()
    await pilot.pause()
    app.chat.action_page_up()
    app.chat.action_page_up()
    await pilot.pause()
    before = app.screen_rows()
    assert not all(item.is_measured for item in app.chat._stack)
    timer.resume()
    await idle(pilot)
    await pilot.pause()
    assert app.screen_rows() == before


@pytest.mark.thorough
async def test_paging_up_through_guessed_blocks_skips_nothing(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load([AssistantBlock(f"line {n}\n\n- a\n- b\n- c") for n in range(60)])
    await pilot.pause()
    seen: list[str] = []
    for _ in range(80):
        seen += [row for row in app.screen_rows() if "line" in row]
        app.chat.action_page_up()
    numbers = {int(row.split()[1]) for row in seen}
    assert numbers == set(range(60))
    assert app.chat.scroll_offset.y == 0


async def test_home_and_end_reach_both_ends(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load(turns(100))
    await pilot.pause()
    app.chat.scroll_home(animate=False)
    await pilot.pause()
    assert app.screen_rows()[1] == " ▌ question 0"
    app.chat.follow_end()
    await pilot.pause()
    assert "file99.py" in app.screen_rows()[-2]


async def test_a_resize_keeps_the_same_text_at_the_top(pilot: Pilot[None]):
    app = app_of(pilot)
    words = " ".join(f"w{n}" for n in range(2_000))
    app.chat.load([AssistantBlock(words), AssistantBlock(words)])
    await idle(pilot)
    app.chat.scroll_to(y=60, animate=False)
    await pilot.pause()
    first_word = app.screen_rows()[0].split()[0]
    for width in (33, 90, 41, 60):
        await pilot.resize_terminal(width, 20)
        await pilot.pause()
        words_on_top = app.screen_rows()[0].split()
        first = int(first_word[1:])
        assert int(words_on_top[0][1:]) <= first <= int(words_on_top[-1][1:])


async def test_a_resize_keeps_following(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load(turns(50))
    await idle(pilot)
    for size in ((60, 40), (80, 10), (30, 24)):
        await pilot.resize_terminal(*size)
        await pilot.pause()
        assert app.chat.is_following
        assert "file49.py" in app.screen_rows()[-2]


async def test_a_reply_streams_in(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.start_reply()
    app.chat.stream_thinking("hmm\n")
    app.chat.stream_thinking("well")
    app.chat.stream_text("# He")
    app.chat.stream_text("llo\n\nwor")
    app.chat._flush()
    assert app.screen_rows()[1:6] == [" ◇ Thought 2 lines", "", "   Hello", "", "   wor"]
    app.chat.stream_text("ld")
    app.chat.finish_reply("interrupted")
    assert app.screen_rows()[3:8] == ["   Hello", "", "   world", "", " ○ interrupted"]
    assert app.chat.last_reply_text == "# Hello\n\nworld"
    assert [type(block) for block in app.chat.blocks] == [ThinkingBlock, AssistantBlock]
    assert app.chat.blocks[1] == AssistantBlock("# Hello\n\nworld", mark="interrupted")


async def test_streamed_rows_are_those_of_the_finished_block(pilot: Pilot[None]):
    app = app_of(pilot)
    text = "Some *text*.\n\n- a\n- b\n\n```py\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    app.chat.start_reply()
    for character in text:
        app.chat.stream_text(character)
        app.chat._flush()
    app.chat.finish_reply()
    streamed = app.screen_rows()
    app.chat.load([AssistantBlock(text)])
    assert app.screen_rows() == streamed


async def test_text_after_more_thinking_is_a_block_of_its_own(pilot: Pilot[None]):
    chat = app_of(pilot).chat
    for stream, text in (
        (chat.stream_text, "one"),
        (chat.stream_thinking, "hm"),
        (chat.stream_text, "two"),
    ):
        stream(text)
    chat.finish_reply()
    assert chat.blocks == (AssistantBlock("one"), ThinkingBlock("hm"), AssistantBlock("two"))


async def test_an_empty_reply_leaves_nothing_unless_it_failed(pilot: Pilot[None]):
    chat = app_of(pilot).chat
    chat.start_reply()
    chat.finish_reply()
    assert chat.blocks == ()
    chat.start_reply()
    chat.finish_reply("error", "no network")
    assert app_of(pilot).screen_rows()[1] == " ✗ the reply failed: no network"


async def test_a_discarded_reply_leaves_nothing(pilot: Pilot[None]):
    chat = app_of(pilot).chat
    chat.start_reply()
    chat.stream_thinking("a")
    chat.stream_text("b")
    chat._flush()
    chat.stream_text("c")
    chat.discard_reply()
    await pilot.pause(0.1)
    assert chat.blocks == ()


async def test_a_running_command_shows_its_last_lines(pilot: Pilot[None]):
    app = app_of(pilot)
    block_id = app.chat.append(ToolBlock("c", "bash", "bash make"))
    for number in range(100):
        app.chat.append_tool_output("c", f"line {number}\n")
    app.chat._flush()
    assert app.screen_rows()[1:8] == [
        " ◐ bash make",
        "   … +95 lines · ctrl+o",
        *(f"   │ line {number}" for number in range(95, 100)),
    ]
    app.chat.replace(block_id, ToolBlock("c", "bash", "bash make", "ok", "all", summary="exit 0"))
    assert app.screen_rows()[1:3] == [" ● bash make  exit 0", ""]
    assert app.chat._by_call["c"] == block_id


async def test_live_output_is_bounded(pilot: Pilot[None]):
    chat = app_of(pilot).chat
    block_id = chat.append(BashBlock("c", "yes"))
    for _ in range(50):
        chat.append_tool_output("c", "y\n" * 10_000)
        chat._flush()
    block = next(item.block for item in chat._stack if item.id == block_id)
    assert isinstance(block, BashBlock)
    assert len(block.output) <= 32_000
    assert block.lines_before + block.output.count("\n") == 500_000


async def test_a_click_on_the_head_line_unfolds_and_folds(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load([ToolBlock("1", "bash", "bash ls", "ok", "a\nb", summary="exit 0")])
    await pilot.pause()
    await pilot.click(app.chat, offset=(5, 1))
    assert app.screen_rows()[1:4] == [" ● bash ls  exit 0", "   │ a", "   │ b"]
    await pilot.click(app.chat, offset=(5, 1), times=1)
    assert app.screen_rows()[2] == ""


async def test_unfolding_keeps_the_row_at_the_top(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load(turns(30))
    await idle(pilot)
    app.chat.action_page_up()
    before = app.screen_rows()
    block_id = app.chat._by_call["c0"]
    app.chat.toggle(block_id)
    await pilot.pause()
    assert app.screen_rows() == before


async def test_all_tools_unfold_also_those_to_come(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.append(ToolBlock("1", "bash", "bash a", "ok", "out a"))
    assert app.chat.toggle_details()
    app.chat.append(ToolBlock("2", "bash", "bash b", "ok", "out b"))
    rows = app.screen_rows()
    assert "   │ out a" in rows
    assert "   │ out b" in rows
    assert not app.chat.toggle_details()
    assert "   │ out a" not in app.screen_rows()


def folded_blocks() -> list[Block]:
    many = "\n".join(f"line {number}" for number in range(60))
    diff = "@@ -0,0 +1,60 @@\n" + "".join(f"+{line}\n" for line in many.split("\n"))
    return [
        UserBlock(many),
        BashBlock("b", "make", "ok", many),
        ToolBlock("t", "bash", "bash make", "error", many),
        ToolBlock("d", "edit", "edit a.py", "ok", diff=diff),
        ToolBlock("o", "read", "read a.py", "ok", many),
        SummaryBlock(many.replace("\n", "\n\n"), 10, 5),
        ThinkingBlock(many),
    ]


async def test_every_kind_of_fold_opens_with_a_key_and_with_a_click(pilot: Pilot[None]):
    chat = app_of(pilot).chat
    chat.load(folded_blocks())
    await idle(pilot)

    def sizes() -> list[int]:
        return [len(chat._stack.rows(index)) for index in range(len(chat._stack))]

    folded = sizes()
    assert max(folded) < 40
    chat.toggle_details()
    chat.show_thinking = True
    unfolded = sizes()
    assert min(unfolded) >= 60
    chat.toggle_details()
    chat.show_thinking = False
    assert sizes() == folded
    for index in range(len(folded)):
        rows = chat._stack.rows(index)
        row = next(number for number, line in enumerate(rows) if line.toggles)
        y = chat._stack.top(index) + chat._stack.gap(index) + row
        chat.scroll_to(y=max(0, y - 5), animate=False)
        await pilot.pause()
        await pilot.click(chat, offset=(5, y - chat.scroll_offset.y))
        await pilot.pause()
        assert len(chat._stack.rows(index)) == unfolded[index]
        chat.toggle(chat._stack[index].id)
        await pilot.pause()


async def test_thinking_is_shown_when_asked_for(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.append(ThinkingBlock("first\nsecond"))
    assert app.screen_rows()[1] == " ◇ Thought 2 lines"
    app.chat.show_thinking = True
    assert app.screen_rows()[1:3] == [" ◇ first", "   second"]


async def test_a_summary_unfolds(pilot: Pilot[None]):
    app = app_of(pilot)
    block_id = app.chat.append(SummaryBlock("## Goal\nfix", 150_000, 62_000))
    assert app.screen_rows()[1].startswith(" ── context compacted (150k -> 62k tokens) ──")
    app.chat.toggle(block_id)
    assert app.screen_rows()[3:5] == ["   Goal", ""]
    assert app.screen_rows()[5] == "   fix"


async def select(pilot: Pilot[None], start: tuple[int, int], end: tuple[int, int]) -> str:
    chat = app_of(pilot).chat
    await pilot.mouse_down(chat, offset=start)
    await pilot.hover(chat, offset=end)
    await pilot.mouse_up(chat, offset=end)
    await pilot.pause()
    return chat.screen.get_selected_text() or ""


async def test_selecting_over_wrapped_rows_gives_the_source_text(pilot: Pilot[None]):
    app = app_of(pilot)
    words = " ".join(f"word{n}" for n in range(20))
    app.chat.load([UserBlock("ask"), AssistantBlock(words + "\n\n```py\na = 1\n\nb = 2\n```")])
    await pilot.pause()
    last = app.screen_rows().index("   ▏ b = 2")
    assert await select(pilot, (3, 1), (12, last)) == f"ask\n\n{words}\n\na = 1\n\nb = 2"


async def test_a_selection_survives_streaming_and_heights_above(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load(turns(100))
    await pilot.pause()
    text = await select(pilot, (3, 15), (20, 18))
    assert text
    app.chat.stream_text("a new reply\n\nwith two paragraphs")
    await idle(pilot)
    app.chat.finish_reply()
    await pilot.pause()
    assert app.screen.get_selected_text() == text


async def test_selected_text_is_highlighted_and_gutters_are_not(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load([AssistantBlock("```\nabc\n```")])
    await pilot.pause()
    app.screen.selections = {app.chat: Selection(Offset(0, 0), None)}
    await pilot.pause()
    style = app.screen.get_component_rich_style("screen--selection")
    marked = "".join(
        segment.text
        for segment in app.chat.render_line(1)
        if segment.style and segment.style.bgcolor == style.bgcolor
    )
    assert marked == "abc"


async def test_a_double_click_selects_a_word_and_a_third_the_block(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load([AssistantBlock("see src/main.py there\n\nand more")])
    await pilot.pause()
    await pilot.click(app.chat, offset=(9, 1), times=2)
    assert app.screen.get_selected_text() == "src/main.py"
    await pilot.click(app.chat, offset=(9, 1), times=3)
    assert app.screen.get_selected_text() == "see src/main.py there\n\nand more"


async def test_a_theme_switch_changes_colours_and_nothing_else(pilot: Pilot[None]):
    app = app_of(pilot)
    app.chat.load(turns(50))
    await idle(pilot)
    app.chat.action_page_up()
    await pilot.pause()
    rows, strip = app.screen_rows(), app.chat.render_line(2)
    for theme in ("textual-light", "ansi-dark", "gruvbox"):
        app.theme = theme
        await pilot.pause()
        assert app.screen_rows() == rows
        assert list(app.chat.render_line(2)) != list(strip)


async def test_a_theme_with_terminal_colours_gets_no_true_colours(pilot: Pilot[None]):
    app = app_of(pilot)
    app.theme = "ansi-light"
    app.chat.load(
        [
            UserBlock("u"),
            AssistantBlock("`c` [l](u)\n```py\nx = 1\n```"),
            ToolBlock("1", "e", "e", "ok", diff=DIFF),
        ]
    )
    await pilot.pause()
    colours = {
        colour
        for y in range(20)
        for segment in app.chat.render_line(y)
        if segment.style
        for colour in (segment.style.color, segment.style.bgcolor)
        if colour is not None
    }
    assert not any(colour.triplet for colour in colours)


async def test_the_plain_text_holds_the_conversation(pilot: Pilot[None]):
    chat = app_of(pilot).chat
    chat.load(
        [
            UserBlock("hi\x1b[2J"),
            AssistantBlock("**yes**"),
            ToolBlock("1", "edit", "edit a.py", "error", summary="no match"),
            BashBlock("2", "ls", "ok", "a\n"),
        ]
    )
    assert chat.to_text() == "> hi␛[2J\n\nyes\n\n* edit a.py  no match  (error)\n\n$ ls\na"


async def test_removing_replacing_and_clearing(pilot: Pilot[None]):
    app = app_of(pilot)
    first = app.chat.append(NoticeBlock("info", "one"))
    second = app.chat.append(NoticeBlock("info", "two"))
    app.chat.remove_block(first)
    app.chat.replace(second, NoticeBlock("error", "three"))
    assert app.screen_rows()[1] == " ✗ three"
    app.chat.replace(first, NoticeBlock("info", "gone"))
    app.chat.remove_block(first)
    assert app.chat.blocks == (NoticeBlock("error", "three"),)
    app.chat.load(())
    assert app.screen_rows()[1] == ""
    assert app.chat.append(NoticeBlock("info", "x")) > second


async def test_a_chat_filled_before_it_is_on_the_screen_is_shown():
    class EarlyApp(ChatApp):
        def compose(self) -> ComposeResult:
            chat = Transcript()
            chat.load(turns(30))
            chat.stream_text("early")
            yield chat

    async with EarlyApp().run_test(size=(50, 12)) as pilot:
        await pilot.pause(0.1)
        assert app_of(pilot).screen_rows()[-2] == "   early"
