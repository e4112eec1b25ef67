"""Reads a server of llama.cpp: ``/props``, and for a server with several models each one's."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from pydantic import BaseModel

from agent_tui.providers.servers.client import ServerClient
from agent_tui.providers.servers.kinds import ServerKind
from agent_tui.providers.servers.models import Amount, Listed, ServedModel


class LlamaStatus(BaseModel):
    """Whether llama.cpp has this one of several models in memory."""

    value: str = ""


class LlamaListed(Listed):
    """One entry of ``/v1/models``."""

    status: LlamaStatus | None = None

    @property
    def is_loaded(self) -> bool | None:
        """Whether the model is in memory; None for a server without such states."""
        return None if self.status is None else self.status.value in ("loaded", "sleeping")


class LlamaListing(BaseModel):
    """``/v1/models``."""

    data: list[LlamaListed]


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


def _read(server: ServerClient) -> Sequence[ServedModel]:
    props = server.get("/props", LlamaProps)
    if props is None:
        return ()
    listing = server.get(server.models_path, LlamaListing)
    return [_read_model(server, props, model) for model in (listing.data if listing else ())]


def _read_model(server: ServerClient, props: LlamaProps, model: LlamaListed) -> ServedModel:
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


LLAMA_CPP: Final = ServerKind(
    name="llama.cpp",
    rank=30,
    ports=(8080, 9931),  # its usual port is to become the second
    start="llama-server -m MODEL.gguf",
    owner="llamacpp",
    read=_read,
)
