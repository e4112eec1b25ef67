"""The option ``--worktree``, and what every start does about worktrees."""

import argparse
from typing import TYPE_CHECKING

from agent_tui.feature import demo_option
from agent_tui.paths import user_data_dir

if TYPE_CHECKING:
    from agent_tui.cli.arguments import Arguments, Start

_OPTION = "worktree"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the option to the command line without a subcommand."""
    parser.add_argument_group("worktree").add_argument(
        f"--{_OPTION}",
        metavar="NAME",
        help="work in a separate git worktree, on the branch NAME; it is created if needed, and "
        "removed at the end if it holds no work",
    )


def take_options(parser: argparse.ArgumentParser, values: argparse.Namespace) -> None:
    """Keep the name of the worktree for `run_in_place`."""
    name: str | None = vars(values).pop(_OPTION)
    if name is None:
        return
    if (demo := demo_option()) is not None and demo.name in values.switches:
        parser.error(f"--{_OPTION} cannot be combined with --{demo.name}")
    values.option_values[_OPTION] = name


def run_in_place(start: "Start", arguments: "Arguments") -> int:
    """Run `start` in the worktree that `arguments` name, if any; returns its exit code.

    Otherwise settles first what killed programs left in the repository. Without such a program,
    this takes microseconds.
    """
    if (name := arguments.option_values.get(_OPTION)) is not None:
        from agent_tui.features.helpers.run import run_in_worktree

        return run_in_worktree(arguments, name, start)
    if any((user_data_dir() / "worktrees").glob("*.lock")):
        from agent_tui.features.helpers.run import remove_empty_worktrees

        arguments = arguments._replace(notices=remove_empty_worktrees(arguments))
    return start(arguments)
