from hypothesis import given
from hypothesis import strategies as st

from agent_tui.tools.shorten import plain_text
from tests.support.rows import each_row


@each_row(
    ("printed", "plain"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;5;200;1mx\x1b[K", "x"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;aGk=\x07x", "x"),
        ("\x1bPq#0;2\x1b\\x", "x"),
        ("\x9b31mx", "x"),
        ("\x1b(Bx\x1b7", "x"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("10%\r100%\r", "100%"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\x08b\x07\x00c\td", "bc\td"),
        ("\x1b]unterminated\nnext line", "\nnext line"),
        ("plain é 漢", "plain é 漢"),
    ],
)
def test_output_is_shown_as_a_screen_would_end_up(printed: str, plain: str):
    assert plain_text(printed) == plain


@given(st.text())
def test_no_control_character_is_left(printed: str):
    left = {c for c in plain_text(printed) if ord(c) < 32 or 127 <= ord(c) < 160}
    assert left <= {"\n", "\t"}
