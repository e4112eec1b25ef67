from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from agent_tui.safe_text import safe_text
from agent_tui.ui.styled_lines import (
    MAX_LINE_CHARS,
    Line,
    pad_line,
    prefix_lines,
    row_at_offset,
    text_offset,
    text_to_copy,
    wrap,
    wrap_text,
)

PLAIN = Style()
pieces = st.sampled_from(
    [
        "a",
        "word",
        " ",
        "   ",
        "日本",
        "語。",
        "👩‍💻",
        "e\u0301",
        "❤️",
        "x" * 30,
        "-",
        "한글",
        "\u0301",
        "🇩🇪",
    ]
)
logical_lines = st.lists(st.lists(pieces, max_size=6).map("".join), max_size=8).map(
    lambda texts: [Segment(safe_text(text, keep_newlines=False), PLAIN) for text in texts]
)


@given(logical_lines, st.integers(2, 40), st.booleans())
def test_no_row_is_wider_than_the_width(runs: list[Segment], width: int, words: bool):
    assert all(line.cells <= width for line in wrap(runs, width, words=words))


@given(logical_lines, st.integers(2, 40), st.booleans())
def test_wrapping_loses_no_text(runs: list[Segment], width: int, words: bool):
    text = "".join(run.text for run in runs)
    lines = wrap(runs, width, words=words)
    assert text_to_copy(lines) == (text.rstrip() if words else text)


@given(logical_lines, st.integers(2, 40))
def test_a_place_in_the_text_survives_another_width(runs: list[Segment], width: int):
    lines = wrap(runs, width)
    rewrapped = wrap(runs, width + 7)
    for row, line in enumerate(lines):
        if line.text:
            found = row_at_offset(rewrapped, text_offset(lines, row))
            assert text_offset(rewrapped, found) <= text_offset(lines, row) + len(line.joint or "")


def rows(lines: list[Line]) -> list[str]:
    return [line.row for line in lines]


def test_rows_break_at_words_and_beside_east_asian_characters():
    assert rows(wrap_text("the quick brown fox", PLAIN, 10)) == ["the quick", "brown fox"]
    assert rows(wrap_text("日本語です。", PLAIN, 6)) == ["日本語", "です。"]


def test_a_long_word_is_cut_at_the_width():
    assert rows(wrap_text("see " + "x" * 12, PLAIN, 5)) == ["see", "xxxxx", "xxxxx", "xx"]


def test_a_wide_character_never_sticks_out():
    assert rows(wrap([Segment("a日b")], 2, words=False)) == ["a", "日", "b"]


def test_code_keeps_its_spaces():
    assert text_to_copy(wrap([Segment("    if x:   ")], 6, words=False)) == "    if x:   "


def test_an_overlong_line_is_cut_and_says_how_much_is_missing():
    text = text_to_copy(wrap_text("x" * 10_000_000, PLAIN, 80))
    assert text == "x" * MAX_LINE_CHARS + " … +9,990,000 characters"


def test_decoration_is_not_copied():
    lines = prefix_lines(wrap_text("one two\nthree", PLAIN, 4), [Segment("> ")], [Segment("  ")])
    lines = [pad_line(line, 12, PLAIN, "py") for line in lines]
    assert rows(lines) == ["> one    py ", "  two    py ", "  thre   py ", "  e      py "]
    assert text_to_copy(lines) == "one two\nthree"


def test_padding_measures_cells_not_characters():
    assert cell_len(pad_line(Line((Segment("日本"),)), 10, PLAIN).row) == 10
