"""``agent-tui events``: prints the schema of what scripts read and write as ``stream-json``."""

import argparse
from collections.abc import Sequence

from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.output import write_json
from agent_tui.features.print.result import event_schema
from agent_tui.features.print.stream import input_schema

_DESCRIPTION = """\
Print the JSON Schema of stream-json: the lines that agent-tui -p prints with
--output-format, and those it reads with --input-format. The schemas are
stable: later versions add types and fields, but never remove any."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui events``."""
    parser = subcommand_parser("events", _DESCRIPTION)
    schema = parser.verb_adder()("schema", "print the JSON Schema of one output line")
    schema.add_argument(
        "--input",
        action="store_true",
        dest="is_input",
        help="print the schema of one input line instead",
    )
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui events`` with the arguments after that word; returns the exit code."""
    arguments = build_parser().parse_args(list(argv))
    write_json(input_schema() if arguments.is_input else event_schema())
    return 0
