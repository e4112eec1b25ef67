from hypothesis import given, settings
from hypothesis import strategies as st
from textual.theme import BUILTIN_THEMES

from agent_tui.features.find.finder import Finder, count_found
from agent_tui.text_search import SmartCaseText
from agent_tui.ui.theme.palette import make_palette
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
from agent_tui.ui.transcript.found_text import readable_text, spans_on_rows
from agent_tui.ui.transcript.markdown import markdown_parser
from agent_tui.ui.transcript.painter import BlockPainter
from agent_tui.ui.transcript.stack import BlockStack
from tests.support.rows import each_row

PALETTE = make_palette(BUILTIN_THEMES["textual-dark"].to_color_system().generate(), ansi=False)
PARSER = markdown_parser()


def drawn(block: Block, width: int = 40):
    painter = BlockPainter(PALETTE, PARSER, width, show_thinking=True)
    return painter.paint(block, is_expanded=True)


def found(block: Block, wanted: str, width: int = 40) -> list[str]:
    """The text of each match on the drawn rows, the parts of a wrapped one joined by a bar."""
    rows = drawn(block, width)
    return [
        "|".join(rows[row].row[start:end] for row, start, end in spans)
        for spans in spans_on_rows(rows, SmartCaseText.of(wanted))
    ]


def finder(*blocks: Block) -> Finder:
    stack = BlockStack(BlockPainter(PALETTE, PARSER, 40, show_thinking=False))
    for block in blocks:
        stack.append(block)
    return Finder(stack, lambda: PALETTE)


def counted(search: Finder, wanted: str) -> int:
    search.look_for(wanted)
    for _ in search.counting():
        pass
    return search.state().total


@each_row(
    ("block", "wanted"),
    [
        (UserBlock("\n".join(f"row {n}" for n in range(99))), "row 98"),
        (AssistantBlock("It is **really** `done`"), "is really done"),
        (AssistantBlock("", note="the server is gone", mark="error"), "server is gone"),
        (ThinkingBlock("let me see"), "me see"),
        (ToolBlock("1", "bash", "bash make", "ok", "a\n\x1b[31mred\x1b[0m"), "red"),
        (ToolBlock("1", "bash", "bash make", "ok", summary="exit 0"), "exit 0"),
        (ToolBlock("1", "edit", "edit a", "ok", diff="@@ -1 +1 @@\n-old\n+new line"), "new line"),
        (BashBlock("1", "make all", "ok", "done"), "make all"),
        (SummaryBlock("## Goal\nShip *it*", 10, 5), "Ship it"),
        (NoticeBlock("info", "Copied."), "copied"),
    ],
)
def test_what_is_found_in_the_data_is_found_on_the_unfolded_rows(block: Block, wanted: str):
    assert count_found(SmartCaseText.of(wanted), block, readable_text(block)) == 1
    assert len(found(block, wanted)) == 1


def test_a_match_goes_on_over_wrapped_rows_without_their_bars():
    block = UserBlock("one two three four five six seven eight nine ten")
    assert found(block, "three four", width=20) == ["three|four"]
    assert found(ToolBlock("1", "t", "t", "error", "x" * 60), "x" * 50, width=37) == [
        "x" * 30 + "|" + "x" * 20
    ]


def test_matches_follow_each_other_in_the_order_of_the_chat():
    search = finder(UserBlock("a b a"), AssistantBlock("nothing"), UserBlock("a"))
    assert counted(search, "a") == 3
    search.start_at(search._stack[1].id)
    assert search.state().number == 3
    numbers: list[int] = []
    for direction in (1, 1, 1, -1, -1):
        search.step(direction)
        numbers.append(search.state().number)
    assert numbers == [1, 2, 3, 2, 1]
    assert counted(search, "zzz") == 0
    assert search.state().number == 0


def test_only_blocks_that_changed_are_read_again():
    search = finder(UserBlock("a"), UserBlock("b"))
    stack = search._stack
    assert counted(search, "a") == 1
    assert not search.is_stale
    texts = dict(search._texts)
    stack.replace(1, UserBlock("a a"))
    assert search.is_stale
    for _ in search.counting():
        pass
    assert search.state().total == 3
    first, second = (item.id for item in stack)
    assert search._texts[first] is texts[first]
    search.start_at(second)
    stack.remove(1)
    for _ in search.counting():
        pass
    assert search.state().number == 1


text = st.text(st.sampled_from("ab AB*`_\n\tİ漢"), max_size=30)


@settings(deadline=None, max_examples=80)
@given(text, st.text(st.sampled_from("abAB"), min_size=1, max_size=3), st.integers(12, 40))
def test_marks_stand_on_the_text_that_was_looked_for(said: str, wanted: str, width: int):
    rows = drawn(UserBlock(said), width)
    needle = SmartCaseText.of(wanted)
    for spans in spans_on_rows(rows, needle):
        marked = "".join(rows[row].row[start:end] for row, start, end in spans)
        assert marked == wanted if needle.is_exact else marked.lower() == wanted
