"""The two limits: of a session, and of a day."""

import math

from agent_tui import paths
from agent_tui.config import Settings
from agent_tui.errors import ConfigError
from agent_tui.features.budget.ledger import DayLedger
from agent_tui.features.budget.settings import BudgetSettings

_WARNS_AT = 0.8
"""The share of a budget at which the user is told."""


class SpentBudget:
    """A limit in US dollars; 0 for none.

    Attributes:
        name: See `SpendLimit`.
        advice: See `SpendLimit`.
        most_usd: The limit.
        spent_usd: Spent so far, as last known.
    """

    name = ""
    advice = ""
    period = ""
    """What the limit is for, in words that follow the amount."""

    def __init__(self, most_usd: float) -> None:
        self.most_usd = most_usd
        self.spent_usd = 0.0
        self._told_usd = 0.0

    @property
    def is_set(self) -> bool:
        """See `SpendLimit.is_set`."""
        return self.most_usd > 0

    def why_spent(self) -> str:
        """See `SpendLimit.why_spent`."""
        if self.spent_usd < self.most_usd:
            return ""
        return f"Stopped: {self.state()}."

    def pay(self, cost_usd: float) -> None:
        """See `SpendLimit.pay`."""
        self.spent_usd += cost_usd

    def state(self) -> str:
        """What is spent, of how much: a clause."""
        share = round(100 * self.spent_usd / self.most_usd)
        decimals = max(2, 1 + math.ceil(-math.log10(self.most_usd)))
        return (
            f"${self.spent_usd:.{decimals}f} spent {self.period}, {share} % of {self.name} "
            f"(${self.most_usd:g})"
        )

    def take_warning(self) -> str:
        """The line about most of the budget being spent, once for each amount; empty if it is not.

        Spending below the share, as on another day, makes it due again.
        """
        if not self.is_set or self.spent_usd < self.most_usd * _WARNS_AT:
            self._told_usd = 0.0
            return ""
        if self._told_usd == self.most_usd:
            return ""
        self._told_usd = self.most_usd
        return f"{self.state()}. At 100 %, requests stop."


class SessionLimit(SpentBudget):
    """``budget_session``: what the present session may cost."""

    name = "budget_session"
    advice = "{setting_changes:budget_session} Or start {new}."
    period = "in this session"
    _session = ""

    def follow(self, session: str, spent_usd: float) -> None:
        """Count for `session`, which has cost `spent_usd` so far; requests under way come on top.

        Args:
            session: Its id.
            spent_usd: What its finished requests cost.
        """
        is_same = session == self._session
        self.spent_usd = max(spent_usd, self.spent_usd) if is_same else spent_usd
        self._session = session


class DayLimit(SpentBudget):
    """``budget_day``: what all programs of the user may cost in a day.

    Args:
        most_usd: The limit; 0 for none.
        ledger: Has the sum of all programs.
    """

    name = "budget_day"
    advice = "{setting_changes:budget_day} A new day begins at midnight."
    period = "today"

    def __init__(self, most_usd: float, ledger: DayLedger) -> None:
        super().__init__(most_usd)
        self._ledger = ledger
        self._unrecorded_usd = 0.0

    def why_spent(self) -> str:
        """See `SpendLimit.why_spent`: also if the sum is unknown, as it may be too high."""
        try:
            self.look()
        except ConfigError as error:
            self.advice = "{setting_changes:budget_day}"
            return f"Stopped: {self.name} is set. {error}"
        self.advice = DayLimit.advice
        return super().why_spent()

    def pay(self, cost_usd: float) -> None:
        """See `SpendLimit.pay`; what cannot be recorded now is recorded before the next request."""
        if not self.is_set or not cost_usd:
            return
        self._unrecorded_usd += cost_usd
        try:
            self.look()
        except ConfigError:  # the next request reports it
            self.spent_usd += cost_usd

    def look(self) -> None:
        """Record what is not recorded yet, and learn the sum. Blocking.

        Raises:
            ConfigError: The sum is unknown, or cannot be stored; says why.
        """
        self.spent_usd = self._ledger.add(self._unrecorded_usd)
        self._unrecorded_usd = 0.0


def make_session_limit(settings: Settings) -> SessionLimit:
    """The limit of a session."""
    return SessionLimit(settings.of(BudgetSettings).budget_session)


def make_day_limit(settings: Settings) -> DayLimit:
    """The limit of a day, over a file in the user's data folder."""
    ledger = DayLedger(paths.user_data_dir() / "budget_day.json")
    return DayLimit(settings.of(BudgetSettings).budget_day, ledger)
