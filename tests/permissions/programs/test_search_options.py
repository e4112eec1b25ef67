"""What grep, rg and diff would search, by their options."""

import pytest

from agent_tui.permissions.named_paths import (
    searches_hidden_files,
    words_to_search,
)
from tests.permissions.programs.parts import part_of
from tests.support.rows import each_row


@each_row(
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


@each_row(
    "command",
    [
        "grep x f",
        "grep -n x f",
        "grep -e r x f",
        "grep -rnE --include='*.py' x",
        "grep -r --include='*.py' x",
        "diff a b",
        "cat x",
    ],
)
def test_lines_of_named_files_or_names_alone_take_in_none(command: str):
    assert searches_hidden_files(part_of(command)) is None


@pytest.mark.parametrize(
    "command", ["rg x", "rg -n x src", "rg --glob=!*.md x", "rg -tpy x", "rg --type=py x"]
)
def test_rg_passes_hidden_files_over_by_itself(command: str):
    assert searches_hidden_files(part_of(command)) is False


@each_row(
    ("command", "words"),
    [
        ("grep -r x", ""),
        ("grep -r x .", "."),
        ("grep -re x", ""),
        ("grep -r -e x .", "."),
        ("grep -rf f", ""),
        ("grep -r -e src -e x", ""),
        ("grep -r x --exclude-dir=src", ""),
        ("rg x src", "src"),
        ("diff -r a b", "a b"),
    ],
)
def test_what_is_searched_is_neither_an_option_nor_what_to_look_for(command: str, words: str):
    assert [word.value for word in words_to_search(part_of(command))] == words.split()
