"""Reads an Ollama server by its own API, and the address that its variable names."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, JsonValue

from agent_tui.providers.servers.client import ServerClient
from agent_tui.providers.servers.kinds import HOST, ServerKind
from agent_tui.providers.servers.models import (
    MAX_MODELS,
    Amount,
    ServedModel,
    window_before_loading,
)

_PORT = 11434


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


def find_root(environ: Mapping[str, str]) -> str:
    """The address that ``OLLAMA_HOST`` names, empty if it names none.

    Parsed as Ollama does: ``host``, ``:port``, ``host:port`` or an address with its scheme, whose
    usual port then counts. A server that listens on all addresses is queried on this machine.
    """
    text = environ.get("OLLAMA_HOST", "").strip().strip("\"'")
    scheme, separator, rest = text.rpartition("://")
    scheme = scheme.lower() or "http"
    try:
        address = urlsplit(f"//{rest}")
        port = address.port
    except ValueError:
        return ""
    if not text or scheme not in ("http", "https"):
        return ""
    if port is None:
        port = {"http": 80, "https": 443}[scheme] if separator else _PORT
    host = address.hostname or HOST
    if host in ("0.0.0.0", "::"):
        host = HOST
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _read(server: ServerClient) -> Sequence[ServedModel]:
    listing = server.get("/api/tags", OllamaListing)
    if listing is None:
        return ()
    running = server.get("/api/ps", OllamaListing)
    loaded = {m.name: m for m in (running.models if running else ())}
    models = [_read_model(server, m, loaded.get(m.name)) for m in listing.models[:MAX_MODELS]]
    return [model for model in models if model is not None]


def _read_model(
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
        said or window_before_loading(details.trained_window),
        is_window_assumed=not said,
        state="loaded" if loaded else "not loaded",
        size_bytes=model.size,
        sees_images="vision" in capabilities,
        thinks="thinking" in capabilities,
        tool_style="native" if details.knows_tools else "text",
        takes_schema=True,
    )


OLLAMA: Final = ServerKind(
    name="Ollama",
    rank=10,
    ports=(_PORT,),
    start="ollama serve",
    owner="library",
    read=_read,
    find_root=find_root,
    lacks_model=re.compile(r"try pulling it|ollama pull", re.IGNORECASE),
    get_model="Get it with `ollama pull {name}`",
)
