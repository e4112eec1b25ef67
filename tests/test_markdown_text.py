"""What Markdown says, without its signs."""

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.text import markdown_sections, markdown_words
from tests.support.rows import each_row


@each_row(
    ("markdown", "words"),
    [
        ("plain text", "plain text"),
        ("# Title\n\nThe **bold** and _slanted_ `code`.", "Title\nThe bold and slanted code."),
        ("- one\n- two\n  1. three", "one\ntwo\nthree"),
        ("```python\nx = __init__\n```", "x = __init__\n"),
        ("| a | b |\n|---|---|\n| 1 | *2* |", "a\nb\n1\n2"),
        ("broken\nline", "broken line"),
        ("~~gone~~ [link](http://x) ![image](y.png)", "gone link image"),
        ("<file>shown</file>", "<file>shown</file>"),
        ("", ""),
    ],
)
def test_signs_are_left_out(markdown: str, words: str):
    assert markdown_words(markdown) == words


@given(st.text())
def test_any_text_can_be_read(text: str):
    assert isinstance(markdown_words(text), str)


@each_row(
    ("markdown", "sections"),
    [
        ("", [""]),
        ("no heading", ["no heading"]),
        ("# a\nb\n## c", ["# a\nb", "## c"]),
        ("before\n\na\n===\nb", ["before\n", "a\n===\nb"]),
        ("# a\n```\n# code\n```\n# b", ["# a\n```\n# code\n```", "# b"]),
        ("# a\n> # quoted\n\n- # listed", ["# a\n> # quoted\n\n- # listed"]),
    ],
)
def test_sections_begin_at_headings(markdown: str, sections: list[str]) -> None:
    assert markdown_sections(markdown) == sections
