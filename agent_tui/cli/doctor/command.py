"""``agent-tui doctor``: what works here, and what to do about the rest."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import cast

from agent_tui.cli.doctor.check import run_probes
from agent_tui.cli.doctor.checks import all_probes
from agent_tui.cli.doctor.report import as_json, as_text, fit_to_show, is_healthy
from agent_tui.cli.doctor.surroundings import look_around
from agent_tui.cli.doctor.terminal import speaks_utf8
from agent_tui.cli.output import write_json, write_text

_DESCRIPTION = (
    "Look at versions, keys, settings, model servers, local models, tools, terminal and folders, "
    "and say what to do about what is wrong. Keys are never shown or tried; nothing is contacted "
    "but servers on this machine and the base_url of your settings. "
    "The exit code is 1 if something does not work."
)


def build_parser() -> argparse.ArgumentParser:
    """The command line of ``agent-tui doctor``."""
    parser = argparse.ArgumentParser(
        prog="agent-tui doctor", description=_DESCRIPTION, allow_abbrev=False
    )
    parser.add_argument("--json", action="store_true", dest="is_json", help="print JSON")
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui doctor`` with the arguments after that word; returns the exit code."""
    arguments = build_parser().parse_args(list(argv))
    around = look_around()
    checks = fit_to_show(run_probes(all_probes(around)), around.secrets)
    if cast(bool, arguments.is_json):
        write_json(as_json(checks))
    else:
        is_plain = "NO_COLOR" in os.environ or os.environ.get("TERM", "dumb") == "dumb"
        write_text(
            as_text(
                checks,
                columns=around.terminal.columns if sys.stdout.isatty() else 0,
                is_utf8=speaks_utf8(os.environ),
                is_coloured=sys.stdout.isatty() and not is_plain,
            )
        )
    return 0 if is_healthy(checks) else 1
