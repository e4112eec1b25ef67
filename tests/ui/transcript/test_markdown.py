import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.theme import BUILTIN_THEMES

from agent_tui.ui.styled_lines import Line, text_to_copy
from agent_tui.ui.theme.palette import Palette, make_palette
from agent_tui.ui.transcript.code import CodePainter
from agent_tui.ui.transcript.markdown import (
    MarkdownPainter,
    MarkdownStream,
    fit_columns,
    markdown_parser,
)
from tests.support.rows import each_row

DARK = make_palette(BUILTIN_THEMES["textual-dark"].to_color_system().generate(), ansi=False)
PARSER = markdown_parser()


def stream(width: int = 60, palette: Palette = DARK) -> MarkdownStream:
    return MarkdownStream(PARSER, MarkdownPainter(palette, CodePainter(palette), width))


def draw(source: str, width: int = 60) -> list[Line]:
    whole = stream(width)
    whole.feed(source)
    return whole.rows(is_end=True)


def rows(source: str, width: int = 60) -> list[str]:
    return [line.row.rstrip() for line in draw(source, width)]


fragments = st.sampled_from(
    [
        "word ",
        "**bold** ",
        "`code` ",
        "日本語 ",
        "👩‍💻 ",
        "\n",
        "\n\n",
        "# ",
        "- ",
        "  - ",
        "1. ",
        "2. ",
        "> ",
        "```\n",
        "```py\n",
        "    ",
        "---\n",
        "===\n",
        "| a | b |\n|---|--:|\n| 1 | 2 |\n",
        "[x](http://y) ",
        "[ ] ",
        "<b>",
        "\r\n",
        "\t",
        "x" * 50,
        "*",
        "~~",
    ]
)
documents = st.lists(fragments, max_size=30).map("".join)


@settings(max_examples=300, deadline=None)
@given(documents, st.lists(st.integers(1, 12), min_size=1, max_size=8), st.integers(12, 50))
def test_streaming_ends_as_drawing_at_once_would(source: str, sizes: list[int], width: int):
    streamed = stream(width)
    position = step = 0
    while position < len(source):
        size = sizes[step % len(sizes)]
        streamed.feed(source[position : position + size])
        streamed.rows()
        position += size
        step += 1
    assert [line.row for line in streamed.rows(is_end=True)] == [
        line.row for line in draw(source, width)
    ]


@settings(deadline=None)
@given(documents, st.integers(12, 50))
def test_finished_rows_never_change(source: str, width: int):
    growing = stream(width)
    before: list[Line] = []
    for character in source:
        growing.feed(character)
        after = growing.rows()
        assert all(old is new for old, new in zip(before, after, strict=False))
        before = after[: growing.finished_rows]


@settings(max_examples=300, deadline=None)
@given(documents, st.integers(30, 60))
def test_no_row_is_wider_than_the_width(source: str, width: int):
    assert all(line.cells <= width for line in draw(source, width))


def test_a_long_text_drawn_in_steps_is_the_same_as_at_once():
    source = "# T\npara\n\n- a\n```\nx\n```\na|b\n-|-\n1|2\n\n" * 300
    stepped = stream()
    stepped.feed(source)
    assert sum(1 for _ in stepped.steps()) > 1
    assert [line.row for line in stepped.rows(is_end=True)] == [
        row
        for _ in range(300)
        for row in rows_with_gap("# T\npara\n\n- a\n```\nx\n```\na|b\n-|-\n1|2")
    ][:-1]


def rows_with_gap(source: str) -> list[str]:
    return [*(line.row for line in draw(source)), ""]


def test_paragraphs_headings_and_lists_read_well():
    source = (
        "# Title\nText *here*.\n\n- one\n- two\n  1. deep\n  2. deeper\n- [x] done\n- [ ] open\n"
    )
    assert rows(source) == [
        "Title",
        "",
        "Text here.",
        "",
        "• one",
        "• two",
        "  1. deep",
        "  2. deeper",
        "☑ done",
        "☐ open",
    ]


def test_line_breaks_of_the_model_are_kept():
    assert rows("one\ntwo") == ["one", "two"]


def test_numbers_of_an_ordered_list_line_up():
    assert rows("9. a\n10. b") == [" 9. a", "10. b"]


def test_a_list_item_wraps_under_its_text():
    assert rows("- alpha beta gamma", 12) == ["• alpha beta", "  gamma"]


def test_code_is_on_its_own_surface_with_its_language_and_copies_as_it_is():
    lines = draw("```python\ndef f():\n    return 1\n```", 30)
    assert [line.row for line in lines] == [
        "▏ def f():" + " " * 13 + "python ",
        "▏     return 1" + " " * 16,
    ]
    assert text_to_copy(lines) == "def f():\n    return 1"
    keyword = next(segment for segment in lines[0].segments if segment.text == "def")
    assert keyword.style is not None
    assert keyword.style.color == DARK.keyword.color


def test_an_unknown_language_is_plain_code():
    assert rows("```nosuch\nx\n```", 30)[0].startswith("▏ x")


def test_a_link_shows_its_address_where_the_label_does_not():
    assert rows("[docs](https://a.b/c) <https://a.b> [https://x.y](https://x.y/)") == [
        "docs (https://a.b/c) https://a.b https://x.y"
    ]


def test_a_quote_has_a_bar_on_every_row():
    assert rows("> one two three", 9) == ["▌ one two", "▌ three"]


def test_a_table_fits_the_width_and_aligns():
    source = "| name | size |\n|---|--:|\n| a | 1 |\n| long long name | 100 |"
    assert rows(source, 30) == [
        "name             size",
        "──────────────   ────",
        "a                   1",
        "long long name    100",
    ]
    assert max(len(row) for row in rows(source, 14)) <= 14


@given(st.lists(st.integers(0, 80), min_size=1, max_size=6), st.integers(30, 100))
def test_columns_share_the_room(natural: list[int], room: int):
    widths = fit_columns(natural, room)
    assert sum(widths) <= room
    assert all(width <= max(1, size) for width, size in zip(widths, natural, strict=True))


def test_a_table_with_too_many_columns_becomes_lines():
    head = "|" + "h|" * 12 + "\n|" + "-|" * 12 + "\n|" + "val|" * 12
    assert rows(head, 20)[:2] == ["h: val", "h: val"]


@pytest.mark.parametrize("text", ["d[key]", "[/foo]", "[red]x[/red]", "<b>hi</b>", "&lt;x&gt;"])
def test_markup_of_others_is_shown_literally(text: str):
    assert rows(text) == [text.replace("&lt;", "<").replace("&gt;", ">")]


def test_control_characters_cannot_come_in_through_entities():
    assert rows("a&#8238;b &#x9b; `\x1b[2J`") == ["a�b � ␛[2J"]


def test_a_rule_in_the_making_is_not_drawn_as_a_heading():
    growing = stream()
    growing.feed("Text\n-")
    assert [line.row for line in growing.rows()] == ["Text"]
    growing.feed(" item\n")
    assert [line.row for line in growing.rows()] == ["Text", "", "• item"]


def test_an_overlong_line_is_cut_and_the_next_one_is_not():
    growing = stream()
    for _ in range(30):
        growing.feed("y" * 1_000)
        assert len(growing.rows()) < 200
    growing.feed("\n\nnext")
    text = text_to_copy(growing.rows(is_end=True))
    assert text == "y" * 10_000 + " … +20,000 characters\n\nnext"


@pytest.mark.thorough
@each_row("unit", ["*a ", "[", "![](", "`a", "> ", "- ", "**", "<", "a\n", "|a"])
def test_hostile_repetition_is_bounded(unit: str):
    source = unit * 20_000
    growing = stream()
    growing.feed(source)
    assert growing.rows(is_end=True)


@pytest.mark.parametrize("blank", ["    ", "\t", "\u00a0"])
def test_a_fence_with_nothing_but_blanks_behind_it_has_no_language(blank: str):
    assert any("code" in row for row in rows(f"```{blank}\ncode\n```"))
