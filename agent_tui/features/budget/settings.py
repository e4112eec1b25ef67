"""The settings of budgets. A project cannot set them: only the user says what may be spent."""

from typing import Annotated, TypeAlias

from pydantic import BaseModel, Field

from agent_tui.config.section import AT_ONCE, NO_DEFAULT

_Dollars: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False), AT_ONCE, NO_DEFAULT]


class BudgetSettings(BaseModel):
    """The amounts."""

    budget_session: _Dollars = Field(
        default=0,
        description="US dollars that a session may cost, helpers and summaries included; 0: any",
    )
    budget_day: _Dollars = Field(
        default=0,
        description="US dollars that all sessions may cost from midnight to midnight, local time; "
        "0: any",
    )
