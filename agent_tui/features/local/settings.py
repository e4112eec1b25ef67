"""The settings of models on this machine."""

from pydantic import BaseModel, Field

from agent_tui.config.section import SettingsSection


class LocalSettings(SettingsSection):
    """``[local]``: the built-in server of models on this machine. It chooses a value that is 0.

    `model` is what ``--local`` uses, `context` the window in tokens, `gpu_layers` how many layers
    go to the graphics card (-1: as many as fit).
    """

    model: str = Field(
        default="", description="Model for --local; empty: the newest one pulled or added"
    )
    threads: int = Field(default=0, ge=0, description="Number of threads; 0: llama.cpp decides")
    context: int = Field(
        default=0,
        ge=0,
        description="Context window in tokens; 0: what the model was trained for, at most 16,384",
    )
    gpu_layers: int = Field(
        default=-1, ge=-1, description="Layers to put on the GPU; -1: as many as fit"
    )


class LocalSection(BaseModel):
    """The section of the settings."""

    local: LocalSettings = Field(
        default=LocalSettings(), description="Built-in server for models on this machine"
    )
