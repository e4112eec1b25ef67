"""The event of goals."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.events import FeatureEvent, Standing

GoalEnding: TypeAlias = Literal["", "met", "stopped", "stuck", "limit"]

_TOLD_COST_USD = 0.005
_CONTINUES = "/goal go continues"


@dataclass(frozen=True, slots=True)
class GoalChanged(FeatureEvent):
    """A goal was set, has come further, or has ended. One `TurnFinished` ends the whole work on it.

    `passed` of `checks` checks passed when they last ran. `turns` and `cost_usd` are what it took
    so far. `ending` is empty while it is open, else ``met``, ``stopped`` (by the user), ``stuck``
    (nothing changed any more) or ``limit`` (a bound was reached); `reason` says it in a sentence.
    """

    text: str
    passed: int
    checks: int
    turns: int
    cost_usd: float
    ending: GoalEnding = ""
    reason: str = ""

    def line(self) -> str:
        """How far it is after a turn, or why it was met or stopped.

        The command says that it was set, and the end of the turn says other endings.
        """
        if self.ending:
            return self.reason if self.ending in ("met", "stopped") else ""
        return f"{self._progress()}." if self.turns else ""

    def standing(self) -> Standing:
        """How far it is, while it is open."""
        return Standing() if self.ending else Standing(self._progress(), _CONTINUES, self.text)

    def _progress(self) -> str:
        """``goal 2 of 3 checks · 14 turns · $1.20``."""
        checks, turns = ("" if number == 1 else "s" for number in (self.checks, self.turns))
        facts = [f"{self.passed} of {self.checks:,} check{checks}" if self.checks else ""]
        facts += [f"{self.turns:,} turn{turns}" if self.turns else ""]
        facts += [f"${self.cost_usd:.2f}" if self.cost_usd >= _TOLD_COST_USD else ""]
        return f"goal {' · '.join(filter(None, facts))}".strip()
