from agent_tui.commands.core.registry import CommandCall, parse_command
from tests.support.rows import each_row


@each_row(
    ("text", "name", "argument"),
    [
        ("/new", "new", ""),
        ("/compact the api", "compact", "the api"),
        ("/compact\nkeep the tests", "compact", "keep the tests"),
        ("/compact \n\n keep\nthe tests", "compact", "keep\nthe tests"),
        ("/compact\tkeep", "compact", "keep"),
        ("  /new \n", "new", ""),
        ("/REVIEW Src", "review", "Src"),
        ("/git:commit all of it", "git:commit", "all of it"),
        ("/my-own_one 1", "my-own_one", "1"),
        ("/queue /new", "queue", "/new"),
        ("/prüfe es", "prüfe", "es"),
        ("/queue  two  blanks ", "queue", "two  blanks"),
    ],
)
def test_the_first_word_is_the_name_and_all_that_follows_the_argument(
    text: str, name: str, argument: str
):
    assert parse_command(text) == CommandCall(name, argument)


@each_row(
    "text",
    [
        "",
        "/",
        "/ new",
        "//",
        "// a comment",
        "/* a comment */",
        "/usr/bin/x is broken",
        "/usr/",
        "/etc.",
        "/new!",
        "/-x",
        "hello /compact",
        "hello\n/compact",
        "\\/new",
    ],
)
def test_a_path_a_comment_or_a_word_with_other_signs_is_a_message(text: str):
    assert parse_command(text) is None
