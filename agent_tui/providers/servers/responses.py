"""The parts of servers' responses that are read; everything else in them is ignored.

Sources: llama.cpp tools/server/README.md (``/props``, ``/models``), docs.ollama.com/api,
lmstudio.ai/docs/developer/rest, docs.vllm.ai (``/v1/models``).
"""

import re
from itertools import pairwise
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, JsonValue


def _plausible(value: JsonValue) -> JsonValue:
    """A number of tokens or bytes, or None if it is 0 (unknown) or not plausible."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value < 10**15 else None


Amount = Annotated[int | None, BeforeValidator(_plausible)]


class ListedMeta(BaseModel):
    """llama.cpp's own part of an entry."""

    n_ctx: Amount = None


class ListedStatus(BaseModel):
    """Whether llama.cpp has this one of several models in memory."""

    value: str = ""


class Listed(BaseModel):
    """One entry of ``/v1/models``."""

    id: str
    owned_by: str = ""
    max_model_len: Amount = None
    context_length: Amount = None
    meta: ListedMeta | None = None
    status: ListedStatus | None = None

    @property
    def window(self) -> int | None:
        """The window in tokens; None if the server does not state it."""
        return self.max_model_len or self.context_length or (self.meta and self.meta.n_ctx)

    @property
    def is_loaded(self) -> bool | None:
        """Whether the model is in memory; None for a server without such states."""
        return None if self.status is None else self.status.value in ("loaded", "sleeping")


class Listing(BaseModel):
    """``/v1/models`` of every server that speaks OpenAI's protocol."""

    data: list[Listed]


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


class OllamaModel(BaseModel):
    """One entry of ``/api/tags`` or, with its window, ``/api/ps``."""

    name: str
    size: Amount = None
    context_length: Amount = None


class OllamaListing(BaseModel):
    """Ollama's ``/api/tags`` (all models) and ``/api/ps`` (those in memory)."""

    models: list[OllamaModel]


class OllamaDetails(BaseModel):
    """Ollama's ``/api/show``."""

    capabilities: list[str] | None = None
    parameters: str = ""
    template: str = ""
    model_info: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])

    @property
    def chosen_window(self) -> int | None:
        """``num_ctx``, if the model's file sets it."""
        words = self.parameters.split()
        values = (after for name, after in pairwise(words) if name == "num_ctx")
        value = next(values, "")
        return int(value) if re.fullmatch(r"[1-9]\d{0,9}", value) else None

    @property
    def trained_window(self) -> int | None:
        """The window in tokens that the model was trained for."""
        values = (v for key, v in self.model_info.items() if key.endswith(".context_length"))
        return next((v for v in values if isinstance(v, int) and v > 0), None)

    @property
    def knows_tools(self) -> bool:
        """Whether tools may be sent; if Ollama lists no capabilities, the template decides."""
        if self.capabilities is not None:
            return "tools" in self.capabilities
        return ".Tools" in self.template or not self.template


class LlamaSettings(BaseModel):
    """The window of one slot in tokens; None for a router, which has no model itself."""

    n_ctx: Amount = None


class LlamaModalities(BaseModel):
    """What llama.cpp's model accepts besides text."""

    vision: bool = False


class LlamaTemplateCaps(BaseModel):
    """What llama.cpp found the chat template to support."""

    supports_tools: bool | None = None


class LlamaProps(BaseModel):
    """llama.cpp's ``/props``."""

    default_generation_settings: LlamaSettings
    modalities: LlamaModalities = LlamaModalities()
    chat_template: str = ""
    chat_template_caps: LlamaTemplateCaps = LlamaTemplateCaps()

    @property
    def knows_tools(self) -> bool | None:
        """Whether tools in a request reach the model; None if unknown."""
        if self.chat_template_caps.supports_tools is not None:
            return self.chat_template_caps.supports_tools
        return "tools" in self.chat_template if self.chat_template else None
