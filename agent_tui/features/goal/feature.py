"""Work turn after turn until the checks of a goal pass and a judge agrees."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "goal",
    options_module="agent_tui.features.goal.options",
    settings="agent_tui.features.goal.settings:GoalSection",
    events=("agent_tui.features.goal.events:GoalChanged",),
    part="agent_tui.features.goal.part:GoalPart",
    brings={"agent_tui.commands": ("agent_tui.features.goal.command:goal",)},
    stores={"goal-checks.json": "which checks of goals you allowed; you are asked again"},
)
