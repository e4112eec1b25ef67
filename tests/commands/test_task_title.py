from hypothesis import given
from hypothesis import strategies as st

from agent_tui.commands.core.short_words import task_title
from tests.support.rows import each_row


@each_row(
    ("request_text", "title"),
    [
        ("fix the parser", "fix the parser"),
        ("Hi, can you please fix the parser? It fails on tabs.", "fix the parser?"),
        ("Please add a --json flag. Then write tests.", "add a --json flag"),
        ("I want you to look at src/a.py: it is slow", "look at src/a.py: it is slow"),
        ("In one line: which Python versions?", "In one line: which Python versions?"),
        ("# Rename `foo` to `bar`\n\nEverywhere.", "Rename `foo` to `bar` Everywhere"),
        ("Nowhere is a test", "Nowhere is a test"),
        ("Please", "Please"),
        ("use v1.2 of a.b.c", "use v1.2 of a.b.c"),
        ("", ""),
        ("one " * 40, "one " + "one " * 15 + "one…"),
        ("x" * 100, "x" * 71 + "…"),
    ],
)
def test_a_title_is_the_task_in_a_few_words(request_text: str, title: str):
    assert task_title(request_text) == title


@given(st.text())
def test_any_request_has_a_short_title_of_one_line(request_text: str):
    title = task_title(request_text)
    assert len(title) <= 74
    assert len(title.splitlines()) <= 1
    assert bool(title) <= bool(request_text.strip())
