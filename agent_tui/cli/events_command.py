"""``agent-tui events``: what scripts read of ``--output-format stream-json``."""

import argparse
from collections.abc import Sequence

from agent_tui.cli.output import write_json
from agent_tui.headless.event_schema import event_schema

_DESCRIPTION = """\
What agent-tui -p --output-format stream-json prints, a JSON object a line.
The schema is stable: later versions add types and fields, and take none away."""


def build_parser() -> argparse.ArgumentParser:
    """The command line of ``agent-tui events``."""
    parser = argparse.ArgumentParser(
        prog="agent-tui events",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verbs = parser.add_subparsers(metavar="COMMAND", required=True, dest="verb")
    verbs.add_parser("schema", help="the JSON Schema of one line")
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui events`` with the arguments after that word; returns the exit code."""
    build_parser().parse_args(list(argv))
    write_json(event_schema())
    return 0
