"""The setting of background jobs."""

from typing import Annotated

from pydantic import BaseModel, Field

from agent_tui.config.section import AT_ONCE


class JobSettings(BaseModel):
    """What follows the end of a job."""

    continue_after_jobs: Annotated[bool, AT_ONCE] = Field(
        default=True,
        description="When a background job of the model ends while nothing runs, tell the model, "
        "which continues",
    )
