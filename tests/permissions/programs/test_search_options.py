"""What grep, rg and diff would search, by their options."""

import pytest

from agent_tui.permissions.programs.search_options import (
    prints_names_of_matches,
    searches_hidden_files,
    searches_where_it_is,
)
from tests.permissions.programs.parts import part_of


@pytest.mark.parametrize(
    "command",
    [
        "grep -r x",
        "grep -rn x .",
        "grep -nR x",
        "grep -d recurse x",
        "grep --recursive x",
        "grep --rec x",
        "grep --directories=recurse x .",
        "grep -e x -r .",
        "grep -r --include='*' x",
        "grep -r --include='*.env' x",
        "grep -r --include='*.py' --include='*' x",
        "grep -rA l x",
        "grep -r -e -l -e x",
        "grep -re 'a\nr'",
        "rg --hidden x",
        "rg -uu x",
        "rg -g '*' x",
        "rg --glob=.x x",
        "rg -t all x",
        "rg -t py -g x -t all x",
        "diff -r a b",
        "diff --recursive a b",
    ],
)
def test_printing_lines_of_whole_folders_takes_in_hidden_files(command: str):
    assert searches_hidden_files(part_of(command)) is True


@pytest.mark.parametrize(
    "command",
    [
        "grep x f",
        "grep -n x f",
        "grep -e r x f",
        "grep -rl x",
        "grep -rE -l x",
        "grep -rnE --include='*.py' x",
        "grep -rc x",
        "grep -r --count x",
        "grep -r --include='*.py' x",
        "grep -r --include '*.py' x",
        "rg -l --hidden x",
        "rg -g '*.py' --hidden x",
        "diff a b",
        "diff -rq a b",
        "diff -r --brief a b",
        "cat x",
    ],
)
def test_lines_of_named_files_or_names_alone_take_in_none(command: str):
    assert searches_hidden_files(part_of(command)) is None


@pytest.mark.parametrize("command", ["rg x", "rg -n x src", "rg -g '!*.md' x"])
def test_rg_passes_hidden_files_over_by_itself(command: str):
    assert searches_hidden_files(part_of(command)) is False


@pytest.mark.parametrize(
    ("command", "is_so"),
    [
        ("grep -r x", True),
        ("grep -r x .", False),
        ("grep -re x", True),
        ("grep -r -e x .", False),
        ("grep -rf f", True),
        ("grep -r --regexp=x", True),
        ("grep -r --regexp x f", False),
        ("grep -r --file=f a", False),
        ("grep -A 5 x", True),
        ("grep -A5 x", True),
        ("grep --context 5 x", True),
        ("grep -r -- -x", True),
        ("grep -r -- -x f", False),
        ("rg x", True),
        ("rg x src", False),
        ("rg -g '*.py' x", True),
    ],
)
def test_a_search_without_a_folder_is_one_where_it_is(command: str, is_so: bool):
    assert searches_where_it_is(part_of(command)) is is_so


@pytest.mark.parametrize(
    ("command", "is_so"),
    [("grep -l x", True), ("grep -nc x", True), ("grep x", False), ("rg -l x", False)],
)
def test_whether_grep_prints_names_or_counts(command: str, is_so: bool):
    assert prints_names_of_matches(part_of(command)) is is_so
