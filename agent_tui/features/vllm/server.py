"""Reads a vLLM server, which describes its models in OpenAI's list."""

from collections.abc import Sequence
from typing import Final

from agent_tui.providers.servers.client import ServerClient
from agent_tui.providers.servers.kinds import ServerKind
from agent_tui.providers.servers.models import ServedModel, ServerListing

_OWNER = "vllm"


def _read(server: ServerClient) -> Sequence[ServedModel]:
    listing = server.get(server.models_path, ServerListing)
    models = listing.data if listing else ()
    return [ServedModel(m.id, m.window, takes_schema=True) for m in models if m.owned_by == _OWNER]


VLLM: Final = ServerKind(
    name="vLLM",
    rank=40,
    ports=(8000,),
    start="vllm serve MODEL",
    owner=_OWNER,
    read=_read,
    has_own_api=False,
)
