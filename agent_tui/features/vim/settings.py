"""The setting of the keys of vi."""

from typing import Annotated

from pydantic import BaseModel, Field

from agent_tui.config.section import AT_ONCE


class VimSettings(BaseModel):
    """Whether the prompt has the keys of vi."""

    vim_mode: Annotated[bool, AT_ONCE] = Field(default=False, description="vi keys in the prompt")
