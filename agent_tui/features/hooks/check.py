"""What ``agent-tui doctor`` checks for hooks."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from agent_tui.cli.folders import load_trust
from agent_tui.cli.settings import user_config_path
from agent_tui.commands.core.checks import Check, CheckContext, ask_program
from agent_tui.commands.core.plugin_kinds import HOOKS
from agent_tui.features.hooks.files import hook_sources
from agent_tui.safe_text import printable_line

_FIX = "Fix it, then run agent-tui doctor again."
_MAX_SHOWN_CHARS = 80
_WORD = re.compile(r"[\w./+-]+")


def check_hooks(context: CheckContext) -> Iterator[Check]:
    """Check that each hook can run: the user's own, plugins', and those of a trusted project."""
    if context.cwd is None:
        return
    found = hook_sources(
        context.loaded.settings, user_config_path(), load_trust(), context.plugins.of(HOOKS)
    ).find(context.cwd)
    for problem in found.problems:
        yield Check("ignored", "warning", problem, _FIX)
    for one in found.hooks:
        spec = one.spec
        shown = printable_line(spec.command, _MAX_SHOWN_CHARS)
        first = spec.command.split()[0]
        if not one.is_allowed:
            why = "not approved yet" if one.is_allowed is None else "refused"
            yield Check(spec.event, "info", f"{why}, not run: {shown}")
        elif spec.function is not None:
            yield Check(spec.event, "ok", f"function {shown}")
        elif _WORD.fullmatch(first) and _is_missing(context, first):
            advice = f"Fix the command in {spec.source}."
            yield Check(spec.event, "warning", f"{first} not found: {shown}", advice)
        else:
            yield Check(spec.event, "ok", shown)


def _is_missing(context: CheckContext, program: str) -> bool:
    """Whether a shell in the working folder finds no such program, builtin or keyword."""
    place = str(Path(context.cwd or "/", program)) if "/" in program else program
    path = context.environ.get("PATH", os.defpath)  # a hook also finds programs of the project
    script = 'PATH=$2; command -v -- "$1"'
    answer = ask_program(context, "/bin/sh", "-c", script, "sh", place, path)
    return answer is not None and answer.returncode != 0
