"""New subcommand: a module of a feature, and a ``Subcommand`` in its ``FEATURE``."""

import pytest

from tests.recipes.program_copy import ProgramCopy

MODULE = '''\
"""``agent-tui greet``: a greeting."""

import argparse
from collections.abc import Sequence


def build_parser() -> argparse.ArgumentParser:
    """The command line of ``agent-tui greet``."""
    parser = argparse.ArgumentParser(prog="agent-tui greet", description="Greet somebody.")
    parser.add_argument("name", choices=("Ada", "Grace"), help="whom")
    parser.add_argument("--loudly", action="store_true", help="in capitals")
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui greet`` with the arguments after that word; returns the exit code."""
    arguments = build_parser().parse_args(list(argv))
    greeting = f"Hello {arguments.name}"
    print(greeting.upper() if arguments.loudly else greeting)
    return 0
'''
FEATURE = '''\
"""Greetings."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "greeting",
    subcommands=(
        Subcommand("greet", "greet somebody", "agent_tui.features.greeting.subcommand"),
    ),
)
'''
FOLDER = "agent_tui/features/greeting"


@pytest.fixture
def copy(tmp_path) -> ProgramCopy:
    made = ProgramCopy(tmp_path, "New subcommand")
    made.add_file(f"{FOLDER}/__init__.py", '"""Greetings."""\n')
    made.add_file(f"{FOLDER}/feature.py", FEATURE)
    made.add_file(f"{FOLDER}/subcommand.py", MODULE)
    return made


@pytest.mark.thorough
def test_it_runs_and_the_help_names_it(copy):
    done = copy.run("greet", "Ada", "--loudly")
    assert (done.returncode, done.stdout) == (0, "HELLO ADA\n")
    assert copy.run("greet").returncode == 2
    help_lines = [" ".join(line.split()) for line in copy.run("--help").stdout.splitlines()]
    assert "greet greet somebody" in help_lines


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("agent-tui gre", ["greet\tgreet somebody"]),
        ("agent-tui greet --l", ["--loudly\tin capitals"]),
        ("agent-tui greet ", ["Ada\twhom", "Grace\twhom"]),
    ],
)
def test_a_shell_completes_it(copy, line, offered):
    assert copy.completions(line) == offered
