"""Reads an LM Studio server by its own API, that of versions before 0.4, too."""

import re
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, Field

from agent_tui.providers.servers.client import ServerClient
from agent_tui.providers.servers.kinds import ServerKind
from agent_tui.providers.servers.models import Amount, ServedModel, window_before_loading


class StudioConfig(BaseModel):
    """How LM Studio loaded a model."""

    context_length: Amount = None


class StudioInstance(BaseModel):
    """A model in LM Studio's memory."""

    config: StudioConfig = StudioConfig()


class StudioCapabilities(BaseModel):
    """LM Studio's list of a model's capabilities."""

    vision: bool = False
    trained_for_tool_use: bool = True


class StudioModel(BaseModel):
    """One entry of LM Studio's ``/api/v1/models``."""

    key: str
    type: str = "llm"
    size_bytes: Amount = None
    max_context_length: Amount = None
    loaded_instances: list[StudioInstance] = Field(default_factory=list[StudioInstance])
    capabilities: StudioCapabilities = StudioCapabilities()

    @property
    def loaded_window(self) -> int | None:
        """The window of the loaded instances in tokens; the smallest, as any may answer."""
        said = (instance.config.context_length for instance in self.loaded_instances)
        return min((window for window in said if window), default=None)


class StudioListing(BaseModel):
    """LM Studio's ``/api/v1/models``, since 0.4."""

    models: list[StudioModel]


class StudioModelV0(BaseModel):
    """One entry of LM Studio's ``/api/v0/models``."""

    id: str
    type: str = "llm"
    state: str = ""
    max_context_length: Amount = None
    loaded_context_length: Amount = None
    capabilities: list[str] | None = None

    @property
    def knows_tools(self) -> bool | None:
        """Whether the model was trained to call tools; None if LM Studio does not say."""
        return None if self.capabilities is None else "tool_use" in self.capabilities


class StudioListingV0(BaseModel):
    """LM Studio's ``/api/v0/models``."""

    data: list[StudioModelV0]


def _read(server: ServerClient) -> Sequence[ServedModel]:
    if (listing := server.get("/api/v1/models", StudioListing)) is None:
        return _read_v0(server)
    return [
        ServedModel(
            model.key,
            model.loaded_window or window_before_loading(model.max_context_length),
            is_window_assumed=not model.loaded_window,
            state="loaded" if model.loaded_instances else "not loaded",
            size_bytes=model.size_bytes,
            sees_images=model.capabilities.vision,
            tool_style="native" if model.capabilities.trained_for_tool_use else "text",
            takes_schema=True,
        )
        for model in listing.models
        if model.type == "llm"
    ]


def _read_v0(server: ServerClient) -> Sequence[ServedModel]:
    """The models of an LM Studio older than 0.4."""
    listing = server.get("/api/v0/models", StudioListingV0)
    return [
        ServedModel(
            model.id,
            model.loaded_context_length or window_before_loading(model.max_context_length),
            is_window_assumed=not model.loaded_context_length,
            state={"not-loaded": "not loaded", "loaded": "loaded"}.get(model.state, "ready"),
            sees_images=model.type == "vlm",
            tool_style="text" if model.knows_tools is False else "native",
            takes_schema=True,
        )
        for model in (listing.data if listing else ())
        if model.type in ("llm", "vlm")
    ]


LM_STUDIO: Final = ServerKind(
    name="LM Studio",
    rank=20,
    ports=(1234,),
    start="lms server start",
    owner="organization_owner",
    read=_read,
    lacks_model=re.compile(
        r"no models? (?:is |are )?loaded|failed to load model|lms load", re.IGNORECASE
    ),
    get_model="Load it in the server (LM Studio: `lms load {name}`)",
)
