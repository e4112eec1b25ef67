"""The option ``--account``."""

import argparse

_OPTION = "account"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the option to the command line without a subcommand."""
    parser.add_argument_group("accounts").add_argument(
        f"--{_OPTION}",
        metavar="NAME",
        help="use the accounts called NAME; agent-tui login lists them",
    )


def take_options(parser: argparse.ArgumentParser, values: argparse.Namespace) -> None:
    """Set the account for this run."""
    name: str | None = vars(values).pop(_OPTION)
    if name == "":
        parser.error(f"--{_OPTION} needs a name")
    if name is not None:
        values.setting_values[_OPTION] = name
