"""Which commands only look, by their options; none is run."""

import pytest

from agent_tui.permissions.programs.read_only import is_read_only, prints_names_only
from agent_tui.permissions.shell.parts import split_command
from tests.permissions.programs.parts import part_of


@pytest.mark.parametrize(
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
        "date -u -d tomorrow +%F",
        "date --date yesterday",
        "date -r f",
        "printf '%s\\n' a",
        "printf '%-5d%%' 3",
        "printf %s $x",
        "xxd -c 16 -l 0x20 f",
        "xxd -ps f",
        "xxd -l5",
        "command -v git",
        "command -V git ls",
        "ls | xargs wc -l",
        "git ls-files | xargs grep -l x",
        "ps",
        "ps aux",
        "ps -ef",
        "ps aux --sort=-rss",
        "ps -o pid,comm",
        "ps -p 1",
        "cd sub",
        "set -e",
        "set -euo pipefail",
        "read -r line",
        "IFS= read -r line",
        "hostname",
        *(f"hostname {option}" for option in ("-f", "-s", "-i", "-I", "-d")),
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
        "pip list",
        "pip show -f x",
        "npm ls --depth=0",
        "go env",
    ],
)
def test_looking_needs_no_rule(command: str):
    assert is_read_only(part_of(command))


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
