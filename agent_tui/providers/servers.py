"""Model servers on this machine: which run, which models they have, how large a window.

Plain GETs to loopback with a short timeout and no proxy; what does not answer, or answers
something else, is not there.
"""

import asyncio
import http.client
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Final, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, JsonValue, ValidationError

from agent_tui.messages import JsonObject
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef

HOST = "127.0.0.1"
PORTS: Final[Mapping[str, int]] = MappingProxyType(
    {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
)
"""The port each server listens on unless it is told otherwise."""

TIMEOUT_S = 0.3
OLLAMA_DEFAULT_WINDOW = 4_096
"""What Ollama gives a model that is not loaded and has no other setting, whatever the model
could take (docs.ollama.com, "context length"); longer requests are cut without a word."""

GUESSED_WINDOW = 32_000
"""For a server on this machine that does not say."""

_MAX_BODY_BYTES = 4_000_000
_MAX_OUTPUT_SHARE = 4
_NOT_FOR_CHAT = ("embed", "rerank", "whisper", "tts")

_ModelT = TypeVar("_ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One model of a server; `window` in tokens, None where the server does not say."""

    id: str
    window: int | None = None
    sees_images: bool = False
    thinks: bool = False

    def found_at(self, base_url: str, via: str, api_key_env: str = "") -> FoundModel:
        """It as a choice; always spoken to by OpenAI's protocol, whatever its name holds."""
        ref = ModelRef(f"openai/{self.id}", base_url, api_key_env)
        window = self.window or GUESSED_WINDOW
        info = ModelInfo(
            name=ref.name,
            window=window,
            max_output=window // _MAX_OUTPUT_SHARE,
            sees_images=self.sees_images,
            thinks=self.thinks,
            source="server" if self.window else "guess",
        )
        return FoundModel(ref, info, via)


async def running_servers(ports: Mapping[str, int] = PORTS) -> tuple[FoundModel, ...]:
    """Every model of every known server that runs on this machine."""
    asked = (asyncio.to_thread(_models_at, title, port) for title, port in ports.items())
    return tuple(model for found in await asyncio.gather(*asked) for model in found)


def models_of(base_url: str, api_key: str = "") -> tuple[ServedModel, ...]:
    """The models an OpenAI-compatible server lists at ``<base_url>/models``; blocking.

    Args:
        base_url: As for ``--base-url``, with its ``/v1``.
        api_key: Sent to this server only; empty for none.
    """
    address = urlsplit(base_url)
    listed = _listed(base_url, api_key)
    if address.hostname not in (HOST, "localhost", "::1") or all(m.window for m in listed):
        return listed
    root = f"{address.scheme}://{address.netloc}"
    better = {m.id: m for ask in (_lm_studio, _ollama, _llama_cpp) for m in ask(root)}
    return tuple(better.get(model.id, model) for model in listed)


def _models_at(title: str, port: int) -> tuple[FoundModel, ...]:
    root = f"http://{HOST}:{port}"
    served = _READERS[title](root)
    via = f"{title} at {HOST}:{port}"
    chat = (m for m in served if not any(word in m.id.lower() for word in _NOT_FOR_CHAT))
    return tuple(model.found_at(f"{root}/v1", via) for model in chat)


class _ListedMeta(BaseModel):
    n_ctx: int | None = None


class _Listed(BaseModel):
    id: str
    max_model_len: int | None = None
    context_length: int | None = None
    meta: _ListedMeta | None = None

    @property
    def window(self) -> int | None:
        return self.max_model_len or self.context_length or (self.meta and self.meta.n_ctx)


class _Listing(BaseModel):
    data: list[_Listed]


class _StudioModel(BaseModel):
    id: str
    type: str = "llm"
    max_context_length: int | None = None
    loaded_context_length: int | None = None


class _StudioListing(BaseModel):
    data: list[_StudioModel]


class _OllamaModel(BaseModel):
    name: str
    context_length: int | None = None


class _OllamaListing(BaseModel):
    models: list[_OllamaModel]


class _OllamaDetails(BaseModel):
    capabilities: list[str] = Field(default_factory=list[str])
    parameters: str = ""
    model_info: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])

    @property
    def chosen_window(self) -> int | None:
        """``num_ctx``, where the model's file sets it."""
        words = self.parameters.split()
        values = (after for name, after in pairwise(words) if name == "num_ctx")
        value = next(values, "")
        return int(value) if value.isdigit() else None


class _GenerationSettings(BaseModel):
    n_ctx: int | None = None


class _Modalities(BaseModel):
    vision: bool = False


class _LlamaProps(BaseModel):
    default_generation_settings: _GenerationSettings
    modalities: _Modalities = _Modalities()


def _listed(base_url: str, api_key: str = "") -> tuple[ServedModel, ...]:
    listing = _ask(f"{base_url.rstrip('/')}/models", _Listing, api_key=api_key)
    return tuple(ServedModel(m.id, m.window) for m in listing.data) if listing else ()


def _vllm(root: str) -> tuple[ServedModel, ...]:
    return _listed(f"{root}/v1")


def _llama_cpp(root: str) -> tuple[ServedModel, ...]:
    props = _ask(f"{root}/props", _LlamaProps)
    if props is None:
        return ()
    window = props.default_generation_settings.n_ctx
    vision = props.modalities.vision
    return tuple(ServedModel(m.id, window, sees_images=vision) for m in _listed(f"{root}/v1"))


def _lm_studio(root: str) -> tuple[ServedModel, ...]:
    listing = _ask(f"{root}/api/v0/models", _StudioListing)
    return tuple(
        ServedModel(
            model.id,
            model.loaded_context_length or model.max_context_length,
            sees_images=model.type == "vlm",
        )
        for model in (listing.data if listing else ())
        if model.type in ("llm", "vlm")
    )


def _ollama(root: str) -> tuple[ServedModel, ...]:
    listing = _ask(f"{root}/api/tags", _OllamaListing)
    if listing is None:
        return ()
    loaded = _ask(f"{root}/api/ps", _OllamaListing)
    windows = {m.name: m.context_length for m in (loaded.models if loaded else ())}
    return tuple(
        _ollama_model(root, model.name, windows.get(model.name)) for model in listing.models
    )


def _ollama_model(root: str, name: str, loaded_window: int | None) -> ServedModel:
    details = _ask(f"{root}/api/show", _OllamaDetails, body={"model": name}) or _OllamaDetails()
    window = loaded_window or details.chosen_window or OLLAMA_DEFAULT_WINDOW
    return ServedModel(
        name,
        window,
        sees_images="vision" in details.capabilities,
        thinks="thinking" in details.capabilities,
    )


_READERS: Final[Mapping[str, Callable[[str], Sequence[ServedModel]]]] = MappingProxyType(
    {"Ollama": _ollama, "LM Studio": _lm_studio, "llama.cpp": _llama_cpp, "vLLM": _vllm}
)


def _ask(
    url: str, answer_type: type[_ModelT], *, body: JsonObject | None = None, api_key: str = ""
) -> _ModelT | None:
    """The answer of a GET (with `body` a POST), None unless it has the expected form."""
    address = urlsplit(url)
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=TIMEOUT_S)
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        connection.request(
            "GET" if body is None else "POST",
            address.path,
            None if body is None else json.dumps(body),
            {**headers, "Content-Type": "application/json"},
        )
        response = connection.getresponse()
        if response.status != 200:
            return None
        return answer_type.model_validate_json(response.read(_MAX_BODY_BYTES))
    except (OSError, http.client.HTTPException, ValidationError):
        return None
    finally:
        connection.close()
