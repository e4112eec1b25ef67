"""The kinds of model servers: where each listens, how to start it and give it a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from agent_tui.local_models.addresses import is_loopback
from agent_tui.providers.base import ModelRef

HOST: Final = "127.0.0.1"

PORTS: Final[Mapping[str, int]] = MappingProxyType(
    {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
)
"""Each server's default port."""

_START_COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Ollama": "ollama serve",
        "LM Studio": "lms server start",
        "llama.cpp": "llama-server -m MODEL.gguf",
        "vLLM": "vllm serve MODEL",
    }
)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server of one kind may run; `root` has no path: ``http://127.0.0.1:11434``."""

    kind: str
    root: str

    @property
    def base_url(self) -> str:
        """Where it speaks OpenAI's protocol."""
        return f"{self.root}/v1"

    @property
    def place(self) -> str:
        """Host and port, for the user."""
        return urlsplit(self.root).netloc


def usual_addresses(
    environ: Mapping[str, str], ports: Mapping[str, int] = PORTS
) -> tuple[ServerAddress, ...]:
    """Where to look for servers: this machine's `ports`, and ``OLLAMA_HOST`` if it is set."""
    named = ollama_root(environ.get("OLLAMA_HOST", "")) if "Ollama" in ports else ""
    return tuple(
        ServerAddress(kind, named if named and kind == "Ollama" else f"http://{HOST}:{port}")
        for kind, port in ports.items()
    )


def ollama_root(text: str) -> str:
    """The address that ``OLLAMA_HOST`` names, empty if it names none.

    Parsed as Ollama does: ``host``, ``:port``, ``host:port`` or an address with its scheme, whose
    usual port then counts. A server that listens on all addresses is queried on this machine.
    """
    text = text.strip().strip("\"'")
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
        port = {"http": 80, "https": 443}[scheme] if separator else PORTS["Ollama"]
    host = address.hostname or HOST
    if host in ("0.0.0.0", "::"):
        host = HOST
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def kind_at(base_url: str) -> str | None:
    """The kind of server that listens at `base_url` on this machine, by its usual port."""
    try:
        port = urlsplit(base_url).port
    except ValueError:
        return None
    if not is_loopback(base_url):
        return None
    return next((kind for kind, usual in PORTS.items() if usual == port), None)


def start_command(base_url: str) -> str:
    """The command that starts the server usually at `base_url`; empty if unknown."""
    kind = kind_at(base_url)
    return _START_COMMANDS[kind] if kind else ""


def name_at_server(model: ModelRef) -> str:
    """The server's own name for `model`: without the name of the protocol."""
    return model.model_id if model.provider == "openai" else model.name
