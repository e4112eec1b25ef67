"""Which commands only look, by their options; none is run."""

import shlex

import pytest

from agent_tui.permissions.programs.read_only import is_read_only, prints_names_only
from agent_tui.permissions.shell.parts import split_command
from tests.permissions.programs.parts import part_of
from tests.support.rows import each_row


@each_row(
    "command",
    [
        "x=1",
        "ls -la *.py",
        "echo *",
        "echo $x",
        "cat a.txt",
        "rg -n x src",
        "rg -nC3 x ./*.py",
        "fd -e py",
        "sort -k2 a",
        "uniq a",
        "date",
        "date +%F",
        "printf '%s\\n' a",
        "printf '%-5d%%' 3",
        "command -v git",
        "command -V git ls",
        "ps",
        "ps aux",
        "ps -ef",
        "ps -p 1",
        "cd sub",
        "set -e",
        "set -euo pipefail",
        "exit 1",
        "wait",
        "jq -r .name f.json",
        "sed -n 1,5p f",
        "awk '{print $1}' f",
        "find . -name '*.py'",
        "[ -f a ]",
        'test "$x" = y',
        "[ $? -eq 0 ]",
        "[ $# -eq 0 ]",
        "python --version",
        "python -V",
    ],
)
def test_looking_needs_no_rule(command: str):
    assert is_read_only(part_of(command))


@each_row(
    "command",
    [
        "make",
        "PATH=.",
        "$x",
        "*",
        "A=1 ls",
        "IFS=$(x) read y",
        "IFS=x cat f",
        "sort *",
        "sort -o f a",
        "uniq a b",
        "rg --pre x y",
        "rg $x",
        "cat $x",
        "fd -x rm",
        "date -s now",
        "date 01010000",
        "date -d -s",
        "date +%F now",
        "printf -v x y",
        "printf %n x",
        "printf %5ln x",
        "printf",
        "printf $x a",
        "xxd a b",
        "xxd -r a",
        "xxd -c",
        "xxd -c x a",
        "xxd -l5x",
        "command git",
        "command -v",
        "ls | xargs cat",
        "ls | xargs sort",
        "ps e",
        "ps auxe",
        "ps -o env",
        "ps -E",
        "ps --sort=rss --env",
        "cd",
        "cd -",
        "cd a b",
        "set",
        "set -x",
        "set -- a",
        "read",
        "read PATH",
        "read -p x y",
        "hostname me",
        "ps user",
        "ps -e time",
        "ps -o pid e",
        "ps axe",
        "exit x",
        "jq env f.json",
        "jq -f x",
        "[ -v a ]",
        "[ $x = y ]",
        "[ * = y ]",
        "python -c x",
        "python --version x",
        "pip install x",
        "pip list --index-url=x",
        "rustup show a b",
        "npm",
        "for f in *; do echo; done; IFS=x",
    ],
)
def test_what_may_change_or_run_something_does(command: str):
    assert not is_read_only(part_of(command))


@each_row(
    ("command", "is_so"),
    [
        ("ls a", True),
        ("find .", True),
        ("cat a", False),
        ("git status", True),
        ("git --no-pager ls-files", True),
        ("git show", False),
        ("git", False),
        ("git $x ls-files", False),
    ],
)
def test_what_prints_only_names_is_told_from_what_prints_content(command: str, is_so: bool):
    assert prints_names_only(part_of(command)) is is_so


@each_row(
    ("command", "is_so"),
    [
        ("xargs -n 1 -0 cat", True),
        ("xargs -I{} cat {}", True),
        ("xargs rm", True),
        ("xargs", False),
        ("xargs -0", False),
        ("xargs -a f cat", False),
    ],
)
def test_xargs_itself_is_harmless_with_the_options_that_only_shape_what_it_runs(
    command: str, is_so: bool
):
    assert is_read_only(split_command(command).commands[0]) is is_so


@pytest.mark.parametrize(
    "script",
    [
        "{ print $1 }",
        "NR > 1",
        "NR > 1 { print }",
        "/a|b>c/ { print }",
        '{ print "a | b" }',
    ],
)
def test_an_awk_script_that_prints_is_known(script: str):
    assert is_read_only(part_of(f"awk {shlex.quote(script)} f"))


@each_row(
    "script",
    [
        '{ print > "f" }',
        '{ printf "x" >> "f" }',
        '{ print | "sh" }',
        '"ls" |& getline',
        "{ getline }",
        'BEGIN { system("x") }',
        "BEGIN { ARGV[1] = 1 }",
        "{ print ENVIRON[1] }",
        "function f() { }",
        "{ f(1) }",
        "@load x",
        '{ print "a }',
        "/a",
        "/[a/ { print }",
        "/a\nb/",
        "{ x } # y",
        "{ print \\x }",
        "{ print /a/ 1 }",
        '{ print /"/ > "f" /"/ }',
        '{ print # "\n; system("x") #"}',
        "{ return /a > b/ }",
        "{ x) /a/ b }",
    ],
)
def test_an_awk_script_that_may_write_run_or_be_misread_is_not(script: str):
    assert not is_read_only(part_of(f"awk {shlex.quote(script)} f"))


@each_row(
    ("arguments", "is_so"),
    [
        (["-F", ":", "{ print }", "f"], True),
        (["-F:", "-vx=1", "{ print }", "f"], False),
        (["-v", "x=1", "{ print }"], False),
        (["{ print }"], True),
        (["-F"], False),
        (["-f", "x"], False),
        (["-i", "inplace", "{ print }"], False),
        (["{ print }", "-f"], False),
        (["{ print }", "/inet/tcp/0/h/1"], False),
        ([], False),
        (["-F", ":"], False),
    ],
)
def test_the_arguments_of_awk_count(arguments: list[str], is_so: bool):
    assert is_read_only(part_of(shlex.join(["awk", *arguments]))) is is_so


@each_row(
    ("script", "is_so"),
    [
        (".a[] | .b", True),
        (".environment", True),
        ("env.HOME", False),
        ("$ENV.HOME", False),
        ("$ #x\n ENV", False),
        ("input_filename", False),
        ('include "x"; .', False),
    ],
)
def test_jq_may_not_look_beyond_its_input(script: str, is_so: bool):
    assert is_read_only(part_of(shlex.join(["jq", "-r", script]))) is is_so
