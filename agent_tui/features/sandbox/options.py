"""The option ``--sandbox``."""

import argparse


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the option to the command line without a subcommand."""
    parser.add_argument_group("sandbox").add_argument(
        "--sandbox",
        choices=("auto", "on", "off"),
        help="run commands in a sandbox if this machine can (default), refuse them without one, "
        "or run them unconfined",
    )


def take_options(_parser: argparse.ArgumentParser, values: argparse.Namespace) -> None:
    """Have the option override the setting."""
    mode: str | None = vars(values).pop("sandbox")
    if mode is not None:
        values.setting_values["sandbox"] = mode
