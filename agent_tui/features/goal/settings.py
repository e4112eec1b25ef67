"""The settings of goals."""

from typing import Annotated

from pydantic import BaseModel, Field

from agent_tui.config.section import AT_ONCE, SettingsSection


class GoalSettings(SettingsSection):
    """``[goal]``: the limits of ``/goal``, and the model that judges what no command can check."""

    judge: str = Field(
        default="",
        description="Model that judges whether a goal is met once all checks pass; empty: the "
        "conversation's own, which sees only the goal, the checks and the changes",
    )
    max_turns: int = Field(default=50, ge=1, description="Most turns toward a goal")
    max_hours: float = Field(default=2, gt=0, description="Longest work toward a goal, in hours")
    check_timeout_s: float = Field(
        default=1_800, gt=0, le=3_600, description="Longest time for one check, in seconds"
    )


class GoalSection(BaseModel):
    """The section of the settings."""

    goal: Annotated[GoalSettings, AT_ONCE] = Field(
        default=GoalSettings(), description="Goals: their bounds and their judge"
    )
