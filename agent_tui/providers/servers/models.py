"""The models of a server, as each kind of server describes them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Final
from urllib.parse import quote

from pydantic import BaseModel, BeforeValidator, Field, JsonValue

from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef, ToolStyle, reply_limit
from agent_tui.providers.servers.client import ServerClient


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


class ServerListing(BaseModel):
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


UNLOADED_WINDOW = 4_096
"""The window in tokens that Ollama and LM Studio give an unloaded model without a setting of its
own, whatever it supports (docs.ollama.com, "context length"). Ollama cuts longer requests without a
word, so more must not be assumed."""

GUESSED_WINDOW = 32_000
"""The window for a server that does not state one."""

_MAX_MODELS = 500
_MAX_ID_CHARS = 200
_NOT_FOR_CHAT = re.compile(
    r"embed|rerank|minilm|whisper|(?:^|[/_.:-])(?:tts|bge|gte|e5)(?:[/_.:-]|$)", re.I
)
_OWNERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "llamacpp": "llama.cpp",
        "vllm": "vLLM",
        "library": "Ollama",
        "organization_owner": "LM Studio",
    }
)
"""``owned_by`` in the model listing, and the kind of server that writes it."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One model of a server; `window` in tokens, None if the server does not state it.

    `is_window_assumed`: it is the server's usual value, not a stated one.
    """

    id: str
    window: int | None = None
    is_window_assumed: bool = False
    state: str = "ready"
    size_bytes: int | None = None
    sees_images: bool = False
    thinks: bool = False
    tool_style: ToolStyle = "native"
    takes_schema: bool = False
    takes_grammar: bool = False

    def at_address(self, base_url: str, via: str, api_key_env: str = "") -> FoundModel:
        """The model as a choice; always called by OpenAI's protocol, whatever its name contains."""
        ref = ModelRef(f"openai/{self.id}", base_url, api_key_env)
        window = self.window or GUESSED_WINDOW
        info = ModelInfo(
            name=ref.name,
            window=window,
            max_output=reply_limit(window),
            sees_images=self.sees_images,
            thinks=self.thinks,
            source="server" if self.window and not self.is_window_assumed else "guess",
            tool_style=self.tool_style,
            writes_calls=True,
            takes_schema=self.takes_schema,
            takes_grammar=self.takes_grammar,
        )
        return FoundModel(ref, info, via, self.state, self.size_bytes)


def read_models(server: ServerClient, kind: str) -> tuple[ServedModel, ...]:
    """The chat models of a server of this kind; none if it is another or does not respond."""
    return _for_chat(_READERS[kind](server))


def read_any(server: ServerClient) -> tuple[str | None, tuple[ServedModel, ...]]:
    """The kind of an unknown server, if it can be detected, and its chat models.

    If neither its kind nor its windows are known, each kind's own API is tried.
    """
    listing = server.get(server.models_path, ServerListing)
    if listing is None:
        return None, ()
    plain = tuple(ServedModel(m.id, m.window) for m in listing.data)
    kind = next((_OWNERS[m.owned_by] for m in listing.data if m.owned_by in _OWNERS), None)
    kinds = (kind,) if kind else ("llama.cpp", "LM Studio", "Ollama")
    if not kind and all(m.window for m in plain):
        return None, _for_chat(plain)
    for guess in kinds:
        better = {m.id: m for m in _READERS[guess](server)}
        if any(m.id in better for m in plain):
            return guess, _for_chat(better.values())
    return kind, _for_chat(plain)


def _for_chat(models: Iterable[ServedModel]) -> tuple[ServedModel, ...]:
    """Models that can hold a conversation, and whose names can be shown and sent unchanged."""
    named = (m for m in models if m.id.isprintable() and 0 < len(m.id) <= _MAX_ID_CHARS)
    return tuple(m for m in named if not _NOT_FOR_CHAT.search(m.id))[:_MAX_MODELS]


def _vllm(server: ServerClient) -> Sequence[ServedModel]:
    listing = server.get(server.models_path, ServerListing)
    models = listing.data if listing else ()
    return [ServedModel(m.id, m.window, takes_schema=True) for m in models if m.owned_by == "vllm"]


def _llama_cpp(server: ServerClient) -> Sequence[ServedModel]:
    props = server.get("/props", LlamaProps)
    if props is None:
        return ()
    listing = server.get(server.models_path, ServerListing)
    return [_llama_model(server, props, model) for model in (listing.data if listing else ())]


def _llama_model(server: ServerClient, props: LlamaProps, model: Listed) -> ServedModel:
    """One model; a server that holds several (a router) describes each loaded one."""
    own: LlamaProps | None = props
    if model.is_loaded is not None:
        path = f"/props?model={quote(model.id, safe='')}&autoload=false"
        own = server.get(path, LlamaProps) if model.is_loaded else None
    return ServedModel(
        model.id,
        own.default_generation_settings.n_ctx if own else model.window,
        state="not loaded" if model.is_loaded is False else "loaded",
        sees_images=own is not None and own.modalities.vision,
        tool_style="text" if own is not None and own.knows_tools is False else "native",
        takes_schema=True,
        takes_grammar=True,
    )


def _lm_studio(server: ServerClient) -> Sequence[ServedModel]:
    if (listing := server.get("/api/v1/models", StudioListing)) is None:
        return _lm_studio_v0(server)
    return [
        ServedModel(
            model.key,
            model.loaded_window or _window_before_loading(model.max_context_length),
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


def _lm_studio_v0(server: ServerClient) -> Sequence[ServedModel]:
    """The models of an LM Studio older than 0.4."""
    listing = server.get("/api/v0/models", StudioListingV0)
    return [
        ServedModel(
            model.id,
            model.loaded_context_length or _window_before_loading(model.max_context_length),
            is_window_assumed=not model.loaded_context_length,
            state={"not-loaded": "not loaded", "loaded": "loaded"}.get(model.state, "ready"),
            sees_images=model.type == "vlm",
            tool_style="text" if model.knows_tools is False else "native",
            takes_schema=True,
        )
        for model in (listing.data if listing else ())
        if model.type in ("llm", "vlm")
    ]


def _ollama(server: ServerClient) -> Sequence[ServedModel]:
    listing = server.get("/api/tags", OllamaListing)
    if listing is None:
        return ()
    running = server.get("/api/ps", OllamaListing)
    loaded = {m.name: m for m in (running.models if running else ())}
    models = [_ollama_model(server, m, loaded.get(m.name)) for m in listing.models[:_MAX_MODELS]]
    return [model for model in models if model is not None]


def _ollama_model(
    server: ServerClient, model: OllamaModel, loaded: OllamaModel | None
) -> ServedModel | None:
    """One model; None if it only makes embeddings."""
    details = server.get("/api/show", OllamaDetails, body={"model": model.name})
    details = details or OllamaDetails()
    capabilities = details.capabilities or ()
    if "embedding" in capabilities and "completion" not in capabilities:
        return None
    said = (loaded and loaded.context_length) or details.chosen_window
    return ServedModel(
        model.name,
        said or _window_before_loading(details.trained_window),
        is_window_assumed=not said,
        state="loaded" if loaded else "not loaded",
        size_bytes=model.size,
        sees_images="vision" in capabilities,
        thinks="thinking" in capabilities,
        tool_style="native" if details.knows_tools else "text",
        takes_schema=True,
    )


def _window_before_loading(trained_window: int | None) -> int:
    return min(UNLOADED_WINDOW, trained_window or UNLOADED_WINDOW)


_READERS: Final[Mapping[str, Callable[[ServerClient], Sequence[ServedModel]]]] = MappingProxyType(
    {"Ollama": _ollama, "LM Studio": _lm_studio, "llama.cpp": _llama_cpp, "vLLM": _vllm}
)
