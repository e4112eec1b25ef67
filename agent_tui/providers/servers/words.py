"""What the user reads when a request to a server of their own fails, and what to do."""

import re

from agent_tui.config.model_addresses import display_address, is_loopback
from agent_tui.providers.base import FaultKind, ModelRef
from agent_tui.providers.servers.kinds import kind_at, own_kinds, start_command

LOST = "connection lost."
"""Why a request failed whose connection ended."""
LOADING_RETRY_S = 15.0
"""Seconds before retrying a server that loads its model; most load within all retries."""

_LOADING = re.compile(r"loading model|model is (?:still )?(?:being )?load(?:ing|ed)", re.I)
_SWITCH = "switch models with {model}"


def name_at_server(model: ModelRef) -> str:
    """The server's own name for `model`: without the name of the protocol."""
    return model.model_id if model.provider == "openai" else model.name


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
    kind = kind_at(model.base_url)
    return f"{kind.name if kind else 'The server'} at {display_address(model.base_url)}"


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
    ways = (kind.way_to_get(detail) for kind in own_kinds())
    return next(filter(None, ways), "Check its name and base_url").format(name=name)
