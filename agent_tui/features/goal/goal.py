"""A goal that the agent works toward until its checks pass, as the session records it."""

from collections.abc import Sequence

from pydantic import Field

from agent_tui.features.goal.events import GoalChanged, GoalEnding
from agent_tui.messages import Stored
from agent_tui.sessions.entries import CustomEntry, Entry, custom_entry, custom_value

_GOAL = "goal"


class Goal(Stored):
    """A goal, its bounds, and how far it is. Each step writes all of it anew; the newest counts.

    Args:
        text: What is to be reached, in the user's words.
        checks: Commands that exit with 0 once it is.
        runs_outside: Whether the checks run outside the sandbox, as the user chose.
        max_turns: Most turns of the model.
        max_s: Longest time of work in seconds.
        max_cost_usd: Most that may be spent; None for no limit of its own.
        began_s: When it was set, in seconds since 1970.
        since: Id of the first entry about it: file changes after it are the work.
        turns: Turns so far.
        took_s: Seconds of work so far.
        cost_usd: Spent so far.
        passed_before: Which checks passed before the work, in their order.
        passed: Which checks passed when they last ran, in their order; empty before.
        missing: What the judge last found missing.
        state: A digest of the failures and of all changed files.
        times_same: How often in a row `state` was the same.
        ending: How it ended (see `GoalChanged`); empty while it is open.
        reason: Why it ended, in a sentence.
    """

    text: str
    checks: tuple[str, ...] = ()
    runs_outside: bool = False
    max_turns: int = Field(default=50, ge=1)
    max_s: float = Field(default=7_200.0, gt=0)
    max_cost_usd: float | None = None
    began_s: float = 0.0
    since: str = ""
    turns: int = 0
    took_s: float = 0.0
    cost_usd: float = 0.0
    passed_before: tuple[bool, ...] = ()
    passed: tuple[bool, ...] = ()
    missing: str = ""
    state: str = ""
    times_same: int = 0
    ending: GoalEnding = ""
    reason: str = ""

    @property
    def is_open(self) -> bool:
        """Whether there is still work to do on it."""
        return not self.ending


def goal_entry(goal: Goal) -> CustomEntry:
    """The entry that records `goal` as it is now."""
    return custom_entry(_GOAL, goal)


def goal_of(entry: Entry) -> Goal | None:
    """The goal in `entry`; None for any other entry or an unreadable one."""
    return custom_value(entry, _GOAL, Goal)


def goal_in(path: Sequence[Entry]) -> Goal | None:
    """The goal on `path` in its newest state, also one that has ended; None if there is none."""
    return next(filter(None, map(goal_of, reversed(path))), None)


def goal_event(goal: Goal) -> GoalChanged:
    """The event that shows `goal` as it is now."""
    return GoalChanged(
        goal.text,
        sum(goal.passed),
        len(goal.checks),
        goal.turns,
        goal.cost_usd,
        goal.ending,
        goal.reason,
    )
