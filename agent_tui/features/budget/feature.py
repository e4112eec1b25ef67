"""Budgets for a session and a day: requests stop when they are spent."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "budget",
    settings="agent_tui.features.budget.settings:BudgetSettings",
    spend_limits=(
        "agent_tui.features.budget.limits:make_session_limit",
        "agent_tui.features.budget.limits:make_day_limit",
    ),
    part="agent_tui.features.budget.part:BudgetPart",
    brings={"agent_tui.commands": ("agent_tui.features.budget.command:budget",)},
    stores={"budget_day.json": "what requests of this day cost; counted from zero"},
)
