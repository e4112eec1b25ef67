"""The kinds of model servers: where each listens, how to start it, and what to do if it fails."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from agent_tui.config.model_addresses import display_address, is_loopback
from agent_tui.providers.base import FaultKind, ModelRef

HOST: Final = "127.0.0.1"

Ports: TypeAlias = Mapping[str, tuple[int, ...]]
PORTS: Final[Ports] = MappingProxyType(
    {"Ollama": (11434,), "LM Studio": (1234,), "llama.cpp": (8080, 9931), "vLLM": (8000,)}
)
"""Each server's default ports: llama.cpp's is to become the second."""

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


def usual_addresses(environ: Mapping[str, str], ports: Ports = PORTS) -> tuple[ServerAddress, ...]:
    """Where to look for servers: this machine's `ports`, and ``OLLAMA_HOST`` if it is set."""
    named = ollama_root(environ.get("OLLAMA_HOST", "")) if "Ollama" in ports else ""
    return tuple(
        ServerAddress(kind, named if named and kind == "Ollama" else f"http://{HOST}:{port}")
        for kind, numbers in ports.items()
        for port in numbers
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
        port = {"http": 80, "https": 443}[scheme] if separator else PORTS["Ollama"][0]
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
    return next((kind for kind, usual in PORTS.items() if port in usual), None)


def start_command(base_url: str) -> str:
    """The command that starts the server usually at `base_url`; empty if unknown."""
    kind = kind_at(base_url)
    return _START_COMMANDS[kind] if kind else ""


def name_at_server(model: ModelRef) -> str:
    """The server's own name for `model`: without the name of the protocol."""
    return model.model_id if model.provider == "openai" else model.name


LOST = "connection lost."
"""Why a request failed whose connection ended."""
LOADING_RETRY_S = 15.0
"""Seconds before retrying a server that loads its model; most load within all retries."""

_LOADING = re.compile(r"loading model|model is (?:still )?(?:being )?load(?:ing|ed)", re.I)
_TO_PULL = re.compile(r"try pulling it|ollama pull", re.I)
_NOT_LOADED = re.compile(r"no models? (?:is |are )?loaded|failed to load model|lms load", re.I)
_SWITCH = "switch models with {model}"


def loading_delay_s(kind: FaultKind, text: str) -> float | None:
    """Seconds to wait for a server that is loading its model; None for other failures."""
    return LOADING_RETRY_S if kind == "overloaded" and _LOADING.search(text) else None


def server_words(kind: FaultKind, model: ModelRef, detail: str) -> tuple[str, str] | None:
    """Message and hint for the user's own server; None if the usual words suffice.

    Args:
        kind: The kind of failure.
        model: The model that was called; has a ``base_url``.
        detail: The server's own words, as one sentence.
    """
    name, where = name_at_server(model), server_title(model)
    match kind:
        case "network":
            start = start_command(model.base_url)
            hint = f"Start it with `{start}`" if start else "Check that the server is running"
            if detail.startswith("host name"):
                hint = "Check base_url and your network"
            reached = f"Cannot reach {server_in_text(model)} ({name}): {detail}"
            return reached, f"{hint}, or {_SWITCH}."
        case "server" if detail.startswith("it sent no reply"):
            hint = "Try again later, or check base_url: most end in /v1."
            return f"{where} failed ({name}): {detail}", hint
        case "overloaded" if _LOADING.search(detail):
            hint = f"Try again in a moment, or {_SWITCH}."
            return f"{where} is still loading {name}: {detail}", hint
        case "timeout" if is_loopback(model.base_url):
            hint = "It may be loading: try again{or_setting:raise loopback_idle_timeout_s}."
            return f"{where} stopped responding ({name}): {detail}", hint
        case "interrupted":
            hint = "Check that the server is running, then try again."
            return interruption_text(name, detail), hint
        case "not_found":
            hint = f"{_get_command(name, detail)}, or {_SWITCH}."
            return f"Model {name} not found ({server_in_text(model)}): {detail}", hint
        case _:
            return None


def server_title(model: ModelRef) -> str:
    """The server of `model`: its kind, if the port shows it, and its address."""
    return f"{kind_at(model.base_url) or 'The server'} at {display_address(model.base_url)}"


def server_in_text(model: ModelRef) -> str:
    """`server_title` within a sentence."""
    title = server_title(model)
    return title[0].lower() + title[1:] if title.startswith("The ") else title


def interruption_text(name: str, detail: str) -> str:
    """The message about a reply of model `name` that ended too early, and why."""
    if detail == LOST:
        return f"Connection lost mid-reply ({name})."
    return f"{name} stopped mid-reply: {detail}"


def _get_command(name: str, detail: str) -> str:
    if _TO_PULL.search(detail):
        return f"Get it with `ollama pull {name}`"
    if _NOT_LOADED.search(detail):
        return f"Load it in the server (LM Studio: `lms load {name}`)"
    return "Check its name and base_url"
