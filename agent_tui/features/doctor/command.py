"""``agent-tui doctor``: reports what works on this machine, and how to fix the rest."""

import argparse
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import Final, cast

from agent_tui._version import __version__
from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.output import write_json, write_text
from agent_tui.commands.core.checks import Check, CheckContext, CheckState
from agent_tui.commands.core.plugin_kinds import FEATURES
from agent_tui.feature import load_object
from agent_tui.features.doctor import machine, models, settings
from agent_tui.features.doctor.check import Environment, Probe, read_environment, run_probes
from agent_tui.messages import JsonObject
from agent_tui.safe_text import strip_control_characters
from agent_tui.secret_text import mask_secrets, mask_values
from agent_tui.text import repair_text

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


def all_probes(env: Environment) -> tuple[Probe, ...]:
    """All probes for `env`, the core's and those of features, grouped by section."""
    checks = (
        ("versions", "program", machine.check_program),
        ("versions", "packages", machine.check_packages),
        ("versions", "own files", machine.check_own_files),
        ("settings", "file", settings.check_settings),
        ("settings", "permissions", settings.check_rules),
        ("keys", "variables", settings.check_keys),
        ("keys", "settings", settings.check_named_variables),
        ("model", "default", models.check_model),
        ("model", "for summaries", models.check_summary_model),
        ("servers", "on this machine", models.check_servers),
        ("servers", "base_url", models.check_base_urls),
        ("tools", "programs", machine.check_tools),
        ("plugins", "plugins", settings.check_plugins),
        ("folders", "folders", machine.check_folders),
        ("folders", "sessions", machine.check_sessions),
        ("working folder", "folder", machine.check_workspace),
        ("network", "network", machine.check_network),
    )
    brought = [
        Probe(row.section, row.name, partial(_run_brought, row.function, env))
        for feature in env.plugins.of(FEATURES)
        for row in feature.checks
    ]
    probes = [Probe(section, name, partial(check, env)) for section, name, check in checks]
    probes += brought
    own = [*dict.fromkeys(section for section, _, _ in checks)]
    new = [probe.section for probe in brought if probe.section not in own]
    at = own.index("plugins")
    sections = [*own[:at], *dict.fromkeys(new), *own[at:]]
    return tuple(sorted(probes, key=lambda probe: sections.index(probe.section)))


def _run_brought(function: str, env: Environment) -> Iterable[Check]:
    return cast("Callable[[CheckContext], Iterable[Check]]", load_object(function))(env)


_MARKS: Final[Mapping[CheckState, tuple[str, int]]] = MappingProxyType(
    {"ok": ("✓", 32), "info": ("·", 2), "warning": ("!", 33), "bad": ("✗", 31)}
)
"""The mark of each state and its colour."""
_INDENT = " " * 4
_USER_IN_ADDRESS: Final = re.compile(r"(?<=://)[^/\s@]*@")
_MIN_COLUMNS, _MAX_COLUMNS = 40, 100
_USUAL_COLUMNS = 80
_MAX_NAME_CHARS = 28


def is_healthy(checks: Sequence[Check]) -> bool:
    """Whether no check is bad."""
    return all(check.state != "bad" for check in checks)


def fit_to_show(checks: Sequence[Check], secrets: Sequence[str]) -> tuple[Check, ...]:
    """`checks` without `secrets`, passwords in addresses, and terminal control characters."""

    def clean(text: str) -> str:
        harmless = strip_control_characters(mask_values(repair_text(text), secrets))
        one_line = " ".join(harmless.split())
        return mask_secrets(_USER_IN_ADDRESS.sub("", one_line), secrets)

    return tuple(
        replace(
            check,
            name=clean(check.name),
            found=clean(check.found),
            advice=clean(check.advice),
        )
        for check in checks
    )


def as_json(checks: Sequence[Check]) -> JsonObject:
    """The report for programs: ``{"version", "ok", "checks": [...]}``."""
    return {
        "version": __version__,
        "ok": is_healthy(checks),
        "checks": [asdict(check) for check in checks],
    }


def as_text(checks: Sequence[Check], *, columns: int = 0, is_coloured: bool = False) -> str:
    """The report for the user.

    Args:
        checks: Grouped by section.
        columns: Width of the terminal; 0 if unknown.
        is_coloured: Whether to colour the marks.
    """
    width = min(columns, _MAX_COLUMNS) if columns >= _MIN_COLUMNS else _USUAL_COLUMNS
    lines: list[str] = []
    for section, members in groupby(checks, key=lambda check: check.section):
        lines.append(f"\x1b[1m{section}\x1b[0m" if is_coloured else section)
        listed = list(members)
        name_width = min(max(len(check.name) for check in listed), _MAX_NAME_CHARS)
        for check in listed:
            mark, colour = _MARKS[check.state]
            mark = f"\x1b[{colour}m{mark}\x1b[0m" if is_coloured else mark
            lines += _check_lines(check, mark, name_width, width - len(_INDENT))
        lines.append("")
    return "\n".join([*lines, *_closing(checks, width)]) + "\n"


def _check_lines(check: Check, mark: str, name_width: int, width: int) -> list[str]:
    """The line of a check, wrapped and indented, and its advice below it."""
    text = f"{check.name:<{name_width}}  {check.found}"
    first, *more = _wrap(text, width, " " * (name_width + 2))
    if check.advice:
        more += [f"  {line}" for line in _wrap(f"-> {check.advice}", width - 2, "   ")]
    return [f"  {mark} {first}".rstrip(), *(_INDENT + line for line in more)]


def _closing(checks: Sequence[Check], width: int) -> list[str]:
    """The final lines: the names of checks with problems and warnings."""
    lines: list[str] = []
    for state, title in (("bad", "Problems"), ("warning", "Warnings")):
        names = [f"{check.section}/{check.name}" for check in checks if check.state == state]
        if names:
            lines += _wrap(f"{title}: {', '.join(dict.fromkeys(names))}.", width, "  ")
    return lines or ["No problems found."]


def _wrap(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
