"""The setting that chooses this front."""

from pydantic import BaseModel, Field


class PlainSettings(BaseModel):
    """Whether lines are printed instead of the screen."""

    plain: bool = Field(
        default=False,
        description="Print lines instead of a full screen, for screen readers; same as --plain",
    )
