import pytest

from agent_tui.ui.commands import built_in_commands
from agent_tui.ui.prompt.completion import (
    ArgumentQuery,
    MentionQuery,
    NameQuery,
    choice_items,
    command_items,
    mention_item,
    query_at,
)
from agent_tui.ui.prompt.file_index import FileIndex, rank_paths


@pytest.mark.parametrize(
    ("line", "query"),
    [
        ("/", NameQuery("")),
        ("/comp", NameQuery("comp")),
        ("/model cl", ArgumentQuery("model", "cl", 7)),
        ("/model ", ArgumentQuery("model", "", 7)),
        ("/compact the api and", None),
        ("look at @src/ma", MentionQuery("src/ma", 8)),
        ("@", MentionQuery("", 0)),
        ('see @"my fi', MentionQuery("my fi", 4)),
        ("(@a", MentionQuery("a", 1)),
        ("mail me@example.org", None),
        ("plain text", None),
        ("/usr/bin", None),
    ],
)
def test_what_is_being_written_at_the_cursor(line: str, query: object):
    assert query_at(line, is_first_line=True) == query


def test_a_slash_on_a_later_line_is_text():
    assert query_at("/comp", is_first_line=False) is None


@pytest.mark.parametrize(
    ("typed", "best"),
    [
        ("comp", "/compact"),
        ("cmpt", "/compact"),
        ("quit", "/quit"),
        ("th", "/thinking"),
        ("exp", "/export"),
        ("new", "/new"),
        ("sess", "/sessions"),
    ],
)
def test_the_command_that_is_meant_comes_first(typed: str, best: str):
    items = command_items(built_in_commands().commands, typed)
    assert items[0].label == best


def test_without_a_letter_every_command_is_offered_in_order():
    commands = built_in_commands().commands
    items = command_items(commands, "")
    assert [item.label for item in items] == ["/" + entry.name for entry in commands]


def test_a_command_that_needs_an_argument_does_not_run_from_the_menu():
    by_label = {item.label: item for item in command_items(built_in_commands().commands, "")}
    assert not by_label["/name"].runs
    assert by_label["/compact"].runs
    assert by_label["/compact"].insert == "/compact "


def test_arguments_are_matched_loosely():
    items = choice_items(("agent-dark", "agent-light", "nord"), "light")
    assert [item.label for item in items] == ["agent-light"]


def test_an_option_is_found_by_its_dashes_not_by_words_that_share_its_letters():
    choices = ("--preview",)
    assert [item.label for item in choice_items(choices, "")] == ["--preview"]
    assert [item.label for item in choice_items(choices, "--p")] == ["--preview"]
    assert choice_items(choices, "review") == ()


def test_a_path_with_blanks_is_quoted_and_a_folder_can_be_gone_into():
    assert mention_item("a b.txt").insert == '@"a b.txt" '
    assert mention_item("src/").insert == "@src/"
    assert mention_item("src/main.py").insert == "@src/main.py "


PATHS = ("README.md", "src/app.py", "src/application/main.py", "tests/test_app.py", "docs/app.md")


def test_a_match_in_the_name_comes_before_one_in_the_folder():
    assert rank_paths(PATHS, "app", 3) == ("src/app.py", "docs/app.md", "tests/test_app.py")


def test_a_typing_error_still_finds_the_file():
    assert "README.md" in rank_paths(PATHS, "redame", 3)


def test_without_a_letter_the_top_files_come_first():
    assert rank_paths(PATHS, "", 2) == ("README.md", "docs/app.md")


async def test_an_old_list_is_shown_at_once_and_read_anew(tmp_path):
    now, listings = [0.0], [["a.py"], ["a.py", "b.py"]]
    index = FileIndex(tmp_path, lambda _root, _limit: listings.pop(0), lambda: now[0])
    assert await index.search("", 5) == ("a.py",)
    now[0] = 60.0
    assert await index.search("", 5) == ("a.py",)
    await index.settle()
    assert await index.search("", 5) == ("a.py", "b.py")
    assert listings == []


async def test_a_folder_that_cannot_be_read_offers_nothing(tmp_path):
    def refuse(_root: object, _limit: int) -> list[str]:
        raise PermissionError(13, "Permission denied")

    assert await FileIndex(tmp_path, refuse, lambda: 0.0).search("a", 5) == ()
