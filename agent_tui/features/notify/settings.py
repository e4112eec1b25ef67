"""The setting of notifications."""

from typing import Literal, TypeAlias

from pydantic import BaseModel, Field

NotifySetting: TypeAlias = Literal["auto", "bell", "off"]


class NotifySettings(BaseModel):
    """How the user is notified."""

    notify: NotifySetting = Field(
        default="auto",
        description="Alerts while the terminal is not in focus: auto notifies if the terminal can, "
        "else rings the bell",
    )
