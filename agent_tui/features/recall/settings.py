"""The settings of recall."""

from pydantic import BaseModel, Field


class RecallSettings(BaseModel):
    """What the model learns about earlier sessions."""

    hint_earlier_work: bool = Field(
        default=True,
        description="If your first message resembles an earlier session in this folder, give the "
        "model a two-line pointer to it",
    )
