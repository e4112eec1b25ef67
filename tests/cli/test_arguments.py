import argparse
from collections.abc import Iterator

import pytest

from agent_tui.cli.arguments import build_parser, parse_arguments
from agent_tui.cli.subcommands import SUBCOMMANDS
from tests.support.rows import each_row


@pytest.mark.parametrize(
    "wrong",
    [
        ["--max-turns", "0"],
        ["--max-turns", "x"],
        ["--max-cost", "-1"],
        ["--max-cost", "inf"],
    ],
)
def test_limits_that_limit_nothing_are_refused(wrong, capsys):
    with pytest.raises(SystemExit) as ended:
        parse_arguments(wrong)
    assert ended.value.code == 2
    assert "is not a" in capsys.readouterr().err


def test_rules_of_the_run_may_be_repeated():
    arguments = parse_arguments(["--allow", "bash(ls)", "--allow", "read", "--deny", "write"])
    assert (arguments.allowed, arguments.denied) == (("bash(ls)", "read"), ("write",))


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("--modle", "x"), "unrecognized arguments: --modle. Did you mean --model? "),
        (("--nothing-like-it",), "unrecognized arguments: --nothing-like-it. "),
        (("--max-cost", "x"), "argument --max-cost: 'x' is not an amount in dollars"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_line(argv, told, capsys):
    with pytest.raises(SystemExit) as left:
        parse_arguments(argv)
    (line,) = capsys.readouterr().err.splitlines()
    assert left.value.code == 2
    assert line.startswith(f"agent-tui: {told}")
    assert line.endswith("See agent-tui --help.")


def every_parser() -> Iterator[argparse.ArgumentParser]:
    """Of the program, its subcommands, and theirs."""
    yield build_parser()
    for row in SUBCOMMANDS.values():
        parser = row.load().build_parser()
        yield parser
        for action in vars(parser)["_actions"]:
            if action.nargs == argparse.PARSER:
                yield from action.choices.values()


@each_row("parser", every_parser(), ids=lambda parser: parser.prog)
def test_help_fits_a_terminal_of_80_columns(parser, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert [line for line in parser.format_help().splitlines() if len(line) > 80] == []
