"""Parses the argument of ``/goal``."""

import argparse
import math
import re
import shlex
from typing import Final, NoReturn

from agent_tui.durations import seconds_of
from agent_tui.errors import UsageError
from agent_tui.features.goal.goal import Goal
from agent_tui.features.goal.settings import GoalSettings

USAGE = (
    'Usage: /goal TEXT [--check "COMMAND"]... [--turns N] [--time 2h] [--cost DOLLARS] '
    "[--outside]. /goal alone shows the goal, /goal stop ends it."
)

MOST_CHARS: Final = 20_000
"""Characters of a goal: it is in every request, and no compaction shortens it."""

_FIRST_OPTION = re.compile(r"\s--(?:text|check|turns|time|cost|outside)(?=[\s=]|$)")


class _Parser(argparse.ArgumentParser):
    """Raises instead of printing and leaving."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"That is not a goal: {message}.", USAGE)


def parse_goal(text: str, settings: GoalSettings) -> Goal:
    """The goal in ``TEXT --check "COMMAND" ... --turns N --time 2h --cost 5 --outside``.

    The text is everything before the first of these options, word for word; it needs no quotes.
    A program that cannot know the text writes it as ``--text=``, quoted.

    Raises:
        UsageError: The text is missing, or an option is unknown or has no valid value.
    """
    at = first.start() if (first := _FIRST_OPTION.search(f" {text}")) else len(text) + 1
    words, options = f" {text}"[:at], f" {text}"[at:]
    try:
        given = shlex.split(options)
    except ValueError as error:
        raise UsageError(f"That is not a goal: {error}.", USAGE) from error
    parser = _Parser(add_help=False, allow_abbrev=False, usage="")
    parser.add_argument("--text", default=words.strip())
    parser.add_argument("--check", action="append", default=[])
    parser.add_argument("--turns", type=int)
    parser.add_argument("--time")
    parser.add_argument("--cost", type=float)
    parser.add_argument("--outside", action="store_true")
    values = parser.parse_args(given)
    return make_goal(
        values.text,
        values.check,
        settings,
        turns=values.turns,
        max_s=None if values.time is None else seconds_of(values.time) or 0.0,
        cost_usd=values.cost,
        runs_outside=values.outside,
    )


def make_goal(
    text: str,
    checks: list[str],
    settings: GoalSettings,
    *,
    turns: int | None = None,
    max_s: float | None = None,
    cost_usd: float | None = None,
    runs_outside: bool = False,
) -> Goal:
    """A goal whose bounds come from `settings` unless they are given.

    Args:
        text: What is to be reached.
        checks: Commands that exit with 0 once it is.
        settings: The ``[goal]`` section.
        turns: Most turns.
        max_s: Longest time in seconds.
        cost_usd: Most that may be spent.
        runs_outside: Whether the checks run outside the sandbox.

    Raises:
        UsageError: The text or a check is empty, all are too long, or a bound is not positive.
    """
    turns = settings.max_turns if turns is None else turns
    max_s = settings.max_hours * 3_600 if max_s is None else max_s
    if not text.strip():
        raise UsageError("The goal has no text: say what is to be reached.", USAGE)
    if (chars := len(text) + sum(map(len, checks))) > MOST_CHARS:
        raise UsageError(
            f"The goal has {chars:,} characters; {MOST_CHARS:,} are allowed.",
            "Put the details into a file, and name the file in the goal.",
        )
    if not all(check.strip() for check in checks):
        raise UsageError("A check is empty: give a command that exits with 0 when it passes.")
    amounts = (max_s,) if cost_usd is None else (max_s, cost_usd)
    if turns < 1 or not all(0 < amount < math.inf for amount in amounts):
        raise UsageError("The bounds of a goal must be positive: --turns 20 --time 2h --cost 5.")
    return Goal(
        text=text.strip(),
        checks=tuple(check.strip() for check in checks),
        runs_outside=runs_outside,
        max_turns=turns,
        max_s=max_s,
        max_cost_usd=cost_usd,
    )
