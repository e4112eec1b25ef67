import pytest

from agent_tui.commands.core.command import Completion
from agent_tui.commands.core.registry import load_commands
from agent_tui.ui.prompt.completion import (
    ArgumentQuery,
    MentionQuery,
    NameQuery,
    SkillQuery,
    argument_items,
    command_items,
    mention_item,
    path_items,
    query_at,
)
from tests.support.rows import each_row


@each_row(
    ("line", "query"),
    [
        ("/", NameQuery("")),
        ("/comp", NameQuery("comp")),
        ("/model cl", ArgumentQuery("model", "cl", 7)),
        ("/model ", ArgumentQuery("model", "", 7)),
        ("/compact the api and", ArgumentQuery("compact", "the api and", 9)),
        ("/loop 2 see @src", MentionQuery("src", 12)),
        ("look at @src/ma", MentionQuery("src/ma", 8)),
        ("@", MentionQuery("", 0)),
        ('see @"my fi', MentionQuery("my fi", 4)),
        ("(@a", MentionQuery("a", 1)),
        ("mail me@example.org", None),
        ("plain text", None),
        ("/usr/bin", None),
        ("please do /rel", SkillQuery("rel", 10, "/")),
        ("please do /Rel", SkillQuery("rel", 10, "/")),
        ("please (/", SkillQuery("", 8, "/")),
        ("$rel", SkillQuery("rel", 0, "$")),
        ("/goal finish with $rel", SkillQuery("rel", 18, "$")),
        ("look in /usr/bi", None),
        ("either/or", None),
        ("it costs US$rel", None),
    ],
)
def test_what_is_being_written_at_the_cursor(line: str, query: object):
    assert query_at(line, is_first_line=True) == query


def test_a_slash_on_a_later_line_names_a_skill():
    assert query_at("/comp", is_first_line=False) == SkillQuery("comp", 0, "/")


@pytest.mark.parametrize("line", ["!ls /rel", "!echo $rel"])
def test_a_shell_command_has_paths_and_variables(line: str):
    assert query_at(line, is_first_line=True, is_shell=True) is None


@each_row(
    ("typed", "best"),
    [
        ("comp", "/compact"),
        ("cmpt", "/compact"),
        ("quit", "/quit"),
        ("c", "/compact"),
        ("ctx", "/context"),
        ("res", "/resume"),
        ("mdl", "/model"),
        ("th", "/thinking"),
        ("exp", "/export"),
        ("new", "/new"),
        ("sess", "/sessions"),
    ],
)
def test_the_command_that_is_meant_comes_first(typed: str, best: str):
    items = command_items(load_commands().commands, typed)
    assert items[0].label == best


def test_without_a_letter_every_command_is_offered_in_order():
    commands = load_commands().commands
    items = command_items(commands, "")
    assert [item.label for item in items] == ["/" + entry.name for entry in commands]


def test_a_command_that_needs_an_argument_does_not_run_from_the_menu():
    by_label = {item.label: item for item in command_items(load_commands().commands, "")}
    assert not by_label["/name"].runs
    assert by_label["/compact"].runs
    assert by_label["/compact"].insert == "/compact "


def test_arguments_are_matched_loosely():
    items = argument_items(("agent-dark", "agent-light", "nord"), "light")
    assert [item.label for item in items] == ["agent-light"]


def test_an_option_is_found_by_its_dashes_not_by_words_that_share_its_letters():
    choices = ("--preview",)
    assert [item.label for item in argument_items(choices, "")] == ["--preview"]
    assert [item.label for item in argument_items(choices, "--p")] == ["--preview"]
    assert argument_items(choices, "review") == ()


def test_a_path_with_blanks_is_quoted_and_a_folder_can_be_gone_into():
    assert mention_item("my notes/").insert == '@"my notes/'
    assert mention_item("a b.txt").insert == '@"a b.txt" '
    assert mention_item("src/").insert == "@src/"
    assert mention_item("src/main.py").insert == "@src/main.py "


def test_the_last_of_several_words_is_completed():
    modes = ("plan", "remove bash(git push *)", "remove edit")
    assert [item.insert for item in argument_items(modes, "remove ba")] == [modes[1]]
    strategies = ("--preview", "--strategy tiered", "--strategy agent")
    after_words = argument_items(strategies, "the parser --str")
    assert after_words[0].insert == "the parser --strategy tiered"
    assert [item.insert for item in argument_items(strategies, "--strategy ag")] == [strategies[2]]
    assert argument_items(strategies, "the parser") == ()


def test_a_choice_with_a_label_is_found_by_it_and_inserts_its_text():
    sessions = (Completion("0a1b", "3h", "fix the parser"), Completion("0c2d", "2d", "parse dates"))
    fixed, *_ = argument_items(sessions, "the par")
    assert (fixed.label, fixed.insert, fixed.description) == ("fix the parser", "0a1b", "3h")
    assert [item.insert for item in argument_items(sessions, "0c")] == ["0c2d"]


def test_what_wants_more_behind_it_is_not_sent():
    (item,) = argument_items(("remove ",), "rem")
    assert not item.runs


def test_a_path_takes_the_place_of_the_last_word():
    (item,) = path_items(("docs/out.md",), "md do")
    assert (item.label, item.insert) == ("docs/out.md", "md docs/out.md")
