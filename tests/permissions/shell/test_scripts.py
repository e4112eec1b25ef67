"""Which scripts of sed, find and test only look."""

from agent_tui.permissions.programs.read_only import (
    condition_only_looks,
    find_only_lists,
    find_roots_start,
    sed_only_prints,
)
from tests.support.rows import each_row


@each_row(
    "script",
    [
        "p",
        "1,5p",
        "/a/,/b/p",
        "$p",
        "/a/,+3d",
        "/x/!d",
        "s/a/b/",
        "s|a/b|c|2",
        "s/\\//x/",
        "1q",
    ],
)
def test_a_sed_script_that_prints_is_known(script: str):
    assert sed_only_prints([script, "f"])


@each_row(
    "script",
    [
        "w f",
        "1w f",
        "e",
        "1e ls",
        "r f",
        "s/a/b/e",
        "s/a/b/w f",
        "s/a/b/ge",
        "s/a/b",
        "s/a",
        "s",
        "s\\a\\b\\",
        "sxaxbx",
        "s a b ",
        "s/[a/b/",
        "s/[/]/x/",
        "s/a\n/b/",
        "/a",
        "/[a/p",
        "/a/,/b",
        "1,2,3p",
        "/a/{pe}",
        "pp",
        "pe",
        "a\\",
        "z",
    ],
)
def test_a_sed_script_that_may_write_run_or_be_misread_is_not(script: str):
    assert not sed_only_prints([script, "f"])


@each_row(
    ("arguments", "is_so"),
    [
        (["-n", "p"], True),
        (["-nE", "p", "f"], True),
        (["--quiet", "p"], True),
        (["-e", "p", "-e", "d", "w f"], True),
        (["-ne", "p"], True),
        (["--expression", "p", "f"], True),
        (["-", "f"], False),
        (["p", "-", "f"], True),
        (["-e"], False),
        (["-e", "w f"], False),
        (["-e", "p", "-e", "e"], False),
        (["-i", "p"], False),
        (["p", "-i"], False),
        (["-n"], False),
        ([], False),
        (["--quiet", "--in-place", "p"], False),
    ],
)
def test_the_options_of_sed_count(arguments: list[str], is_so: bool):
    assert sed_only_prints(arguments) is is_so


@each_row(
    "arguments",
    [
        "",
        ". -name x",
        "-L . -type f -print0",
        "a b ( -name x -o -name y ) -prune",
        ". ! -empty",
        ". -exec rm {} ; -print",
        ". -exec rm {} +",
        ". -exec rm",
        "-P -H a -ls",
    ],
)
def test_find_lists_with_tests_and_what_it_runs_is_judged_apart(arguments: str):
    assert find_only_lists(arguments.split())


@each_row(
    "arguments",
    [
        ". -delete",
        ". -fprint f",
        ". -name x -delete",
        ". -name -print -fls f",
        ". -exec rm {} ; -delete",
        ". -unknown",
        "-O3 .",
        "-D tree .",
        "-L -D tree .",
        "-X .",
    ],
)
def test_find_that_deletes_writes_or_is_not_known_does_more(arguments: str):
    assert not find_only_lists(arguments.split())


@each_row(
    ("arguments", "start"),
    [("", 0), ("a", 0), ("-L a", 1), ("-L -O3 -D tree a", 4), ("-D", 1), ("-- a", 1), ("-name", 0)],
)
def test_the_folders_of_find_begin_behind_its_own_options(arguments: str, start: int):
    assert find_roots_start(arguments.split()) == start


@each_row(
    ("condition", "is_so"),
    [
        ([], True),
        (["a"], True),
        ([None], True),
        (["-f", "a", "]"], True),
        (["!", "-f", "a"], True),
        (["!", "!", "a", "=", "b"], True),
        ([None, "=", None], True),
        (["-f", None], True),
        (["-f", "a", "-a", "-d", "b"], True),
        (["a", "-o", "-n", "b"], True),
        (["-v", "a"], False),
        (["-R", "a"], False),
        ([None, "a"], False),
        (["a", "-x", "b"], False),
        (["a", None, "b"], False),
        (["-f", "a", "-a", "-v", "b"], False),
        (["a", "b", "c", "d"], False),
    ],
)
def test_conditions_know_their_operators(condition: list[str | None], is_so: bool):
    assert condition_only_looks(condition) is is_so
