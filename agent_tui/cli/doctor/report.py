"""The report: lines for the user, or values for JSON."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from types import MappingProxyType
from typing import Final

from agent_tui import __version__
from agent_tui.cli.doctor.check import Check, CheckState
from agent_tui.messages import JsonObject
from agent_tui.safe_text import strip_control_characters
from agent_tui.secret_text import mask_secrets, mask_values
from agent_tui.text import repair_text

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
