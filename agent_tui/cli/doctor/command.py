"""``agent-tui doctor``: what works here, and what to do about the rest."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias, cast

from agent_tui.cli.command_parser import CommandParser
from agent_tui.cli.doctor import configuration, folders, machine, models
from agent_tui.cli.doctor.check import (
    Check,
    Environment,
    Probe,
    read_environment,
    run_probes,
)
from agent_tui.cli.doctor.machine import speaks_utf8
from agent_tui.cli.doctor.report import as_json, as_text, fit_to_show, is_healthy
from agent_tui.cli.output import write_json, write_text

_DESCRIPTION = (
    "Check versions, keys, settings, model servers, local models, tools, terminal and folders, "
    "and suggest fixes. Keys are never shown or tried. Only servers on this machine and the "
    "base_url in your settings are contacted. The exit code is 1 if something does not work."
)
_CheckFunction: TypeAlias = Callable[[Environment], Iterable[Check]]
_CHECKS: tuple[tuple[str, str, _CheckFunction], ...] = (
    ("versions", "program", machine.check_program),
    ("versions", "packages", machine.check_packages),
    ("versions", "pip", machine.check_pip),
    ("versions", "tokenizer", machine.check_counting),
    ("settings", "file", configuration.check_settings),
    ("settings", "environment", configuration.check_environment),
    ("settings", "permissions", configuration.check_rules),
    ("keys", "variables", configuration.check_keys),
    ("keys", "settings", configuration.check_named_variables),
    ("keys", "addresses", configuration.check_addresses),
    ("model", "default", models.check_model),
    ("model", "for summaries", models.check_summary_model),
    ("model", "with --local", models.check_local_model),
    ("servers", "base_url", models.check_base_urls),
    ("local models", "llama.cpp", models.check_server_package),
    ("local models", "library", models.check_library),
    ("local models", "disk", models.check_room),
    ("tools", "git", machine.check_git),
    ("tools", "rg", machine.check_ripgrep),
    ("tools", "bash", machine.check_bash),
    ("tools", "sandbox", machine.check_sandbox),
    ("tools", "editor", machine.check_editor),
    ("mcp", "servers", configuration.check_servers),
    ("hooks", "hooks", configuration.check_hooks),
    ("terminal", "terminal", machine.check_terminal),
    ("terminal", "display", machine.check_looks),
    ("terminal", "multiplexer", machine.check_multiplexer),
    ("terminal", "clipboard", machine.check_clipboard),
    ("folders", "session files", folders.check_sessions),
    ("folders", "log file", folders.check_log),
    ("folders", "disk", folders.check_disk),
    ("working folder", "folder", folders.check_workspace),
    ("network", "network", machine.check_network),
)
_SECTIONS = tuple(dict.fromkeys(section for section, _, _ in _CHECKS))


def build_parser() -> argparse.ArgumentParser:
    """The command line of ``agent-tui doctor``."""
    parser = CommandParser(prog="agent-tui doctor", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", dest="is_json", help="print JSON")
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui doctor`` with the arguments after that word; returns the exit code."""
    arguments = build_parser().parse_args(list(argv))
    env = read_environment()
    checks = fit_to_show(run_probes(all_probes(env)), env.secrets)
    if cast(bool, arguments.is_json):
        write_json(as_json(checks))
    else:
        is_plain = "NO_COLOR" in os.environ or os.environ.get("TERM", "dumb") == "dumb"
        write_text(
            as_text(
                checks,
                columns=env.terminal.columns if sys.stdout.isatty() else 0,
                is_utf8=speaks_utf8(os.environ),
                is_coloured=sys.stdout.isatty() and not is_plain,
            )
        )
    return 0 if is_healthy(checks) else 1


def all_probes(env: Environment) -> tuple[Probe, ...]:
    """Everything that is looked at in `env`, those of one section together."""
    own = env.folders
    places = {
        "config": own.config,
        "data": own.data,
        "sessions": own.sessions,
        "models": own.models,
        "cache": own.cache,
        "log": own.log_file.parent,
    }
    probes = [
        Probe("folders", name, partial(folders.check_folder, env, name, path))
        for name, path in places.items()
        if path is not None
    ]
    for address in env.server_addresses:
        run = partial(models.check_server, env, address)
        probes.append(Probe("servers", address.kind, run))
    probes += [Probe(section, name, partial(check, env)) for section, name, check in _CHECKS]
    return tuple(sorted(probes, key=lambda probe: _SECTIONS.index(probe.section)))
