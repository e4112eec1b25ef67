"""The settings of rules."""

from typing import Annotated

from pydantic import BaseModel, Field

from agent_tui.config.section import AT_ONCE


class RuleSettings(BaseModel):
    """Whether rules are offered."""

    offer_rules: Annotated[bool, AT_ONCE] = Field(
        default=True,
        description="When you made the same correction more than once, offer a line for AGENTS.md",
    )
