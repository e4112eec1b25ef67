"""``agent-tui doctor``: reports what works on this machine, and how to fix the rest."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.output import write_json, write_text

if TYPE_CHECKING:
    from agent_tui.cli.doctor.check import Environment, Probe

_DESCRIPTION = """\
Check versions, settings, keys, models, servers, tools, sandbox, hooks, plugins
and folders, and suggest fixes. Keys are never shown or tried. Only servers on
this machine and the base_url in your settings are contacted. The exit code is 1
if something does not work."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui doctor``."""
    parser = subcommand_parser("doctor", _DESCRIPTION)
    parser.add_json()
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui doctor`` with the arguments after that word; returns the exit code."""
    arguments = build_parser().parse_args(list(argv))
    from agent_tui.cli.doctor.check import read_environment, run_probes
    from agent_tui.cli.doctor.report import as_json, as_text, fit_to_show, is_healthy

    env = read_environment()
    checks = fit_to_show(run_probes(all_probes(env)), env.secrets)
    if cast(bool, arguments.is_json):
        write_json(as_json(checks))
    else:
        is_terminal = sys.stdout.isatty()
        is_plain = "NO_COLOR" in os.environ or os.environ.get("TERM", "dumb") == "dumb"
        columns = shutil.get_terminal_size((0, 0)).columns if is_terminal else 0
        write_text(as_text(checks, columns=columns, is_coloured=is_terminal and not is_plain))
    return 0 if is_healthy(checks) else 1


def all_probes(env: "Environment") -> "tuple[Probe, ...]":
    """All probes for `env`, grouped by section."""
    from agent_tui.cli.doctor import folders, machine, models, settings
    from agent_tui.cli.doctor.check import Probe

    checks = (
        ("versions", "program", machine.check_program),
        ("versions", "packages", machine.check_packages),
        ("settings", "file", settings.check_settings),
        ("settings", "permissions", settings.check_rules),
        ("keys", "variables", settings.check_keys),
        ("keys", "settings", settings.check_named_variables),
        ("model", "default", models.check_model),
        ("model", "for summaries", models.check_summary_model),
        ("model", "with --local", models.check_local_model),
        ("model", "llama.cpp", models.check_server_package),
        ("servers", "on this machine", models.check_servers),
        ("servers", "base_url", models.check_base_urls),
        ("tools", "programs", machine.check_tools),
        ("tools", "sandbox", machine.check_sandbox),
        ("hooks", "hooks", settings.check_hooks),
        ("plugins", "plugins", settings.check_plugins),
        ("folders", "folders", folders.check_folders),
        ("folders", "sessions", folders.check_sessions),
        ("working folder", "folder", folders.check_workspace),
        ("network", "network", machine.check_network),
    )
    return tuple(Probe(section, name, partial(check, env)) for section, name, check in checks)
