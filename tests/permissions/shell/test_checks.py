"""Shell text that bash could read otherwise than the grammar does."""

from agent_tui.permissions.shell.checks import (
    is_plain_arithmetic,
    is_plain_condition,
    only_looks_up,
)
from agent_tui.permissions.shell.parts import split_command
from tests.support.rows import each_row


@each_row(
    ("command", "problem"),
    [
        ("x" * 20_001, "too long"),
        ("a\x07b", "control character"),
        ("a\u2028b", "LINE SEPARATOR"),
        ("a\u3164b", "HANGUL FILLER"),
        ("a \ue000", "U+E000"),
        ("a \u0378", "U+0378"),
        ("a\u2029b", "PARAGRAPH SEPARATOR"),
        ("a\u3000b", "IDEOGRAPHIC SPACE"),
        ("a\u200db", "ZERO WIDTH JOINER"),
        ("cat <<A$B\nx\nA$B", "end of a here-document"),
        ("cat <<EOF\nx\n", "understood"),
        ("echo `echo \\`a\\``", "nested backquotes"),
        ("ls a\\\n#; rm x", "joins two lines"),
        ("cat .e\\\nnv", "joins two lines"),
        ("cat .e\\\n\\\nnv", "joins two lines"),
        ('cat "$x"\\\nnv', "joins two lines"),
    ],
)
def test_what_is_refused_says_why(command: str, problem: str):
    parts = split_command(command)
    assert parts.commands == ()
    assert problem in parts.problem


@each_row(
    "command",
    [
        "x" * 20_000,
        "echo äöü 漢字",
        "a\n\tb",
        "cat <<'EOF'\nx ` $(\nEOF",
        "cat <<EOF && ls\nx\nEOF\nls",
        "echo a # b",
        "ls;# b",
        "ls\t# b",
        "ls \\\n# b",
        "ls \\\n  -l\\\n  -a",
        "ls &&\\\n ls",
        "ls\\\n; ls",
        "# a\n# b",
        "echo a \\\n b",
        "echo `a`",
        "echo 'a;b' \"a;b\" a\\;b",
    ],
)
def test_what_both_read_alike_is_not_refused(command: str):
    assert split_command(command).problem == ""


@each_row(
    ("expansion", "is_so"),
    [
        ("${x}", True),
        ("${#x}", True),
        ("${x%.py}", True),
        ("${x:-y}", True),
        ("${x:1:2}", True),
        ("${x:=y}", False),
        ("${!x}", False),
        ("${x@P}", False),
        ("${x:-$(a)}", False),
        ("${x[1]}", False),
    ],
)
def test_expansions_that_only_look_a_variable_up_are_known(expansion: str, is_so: bool):
    assert only_looks_up(expansion) is is_so


def test_arithmetic_with_names_and_conditions_that_compute_are_not_plain():
    assert is_plain_arithmetic("$((1 + 2))")
    assert not is_plain_arithmetic("$((x + 2))")
    assert is_plain_condition("[[ -f a && $b == c ]]")
    assert not is_plain_condition("[[ $a -eq 1 ]]")
    assert not is_plain_condition("[[ -v a ]]")
