"""Vertex AI: Gemini and Claude in their own protocols, on Google Cloud."""

import re
from collections.abc import Mapping
from typing import Final

from agent_tui.features.google import gemini
from agent_tui.features.google.account import GoogleAccount
from agent_tui.messages import JsonObject
from agent_tui.providers.base import ModelRef
from agent_tui.providers.wires import anthropic
from agent_tui.providers.wires.base import Address, Fit, MissingKeyError, WireRequest, key_of
from agent_tui.providers.wires.http import Known, http_wire

_PREFIX = "vertex_ai/"
_PROJECTS = ("VERTEXAI_PROJECT", "VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT")
_LOCATIONS = ("VERTEXAI_LOCATION", "VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION")
_USUAL_LOCATION = "us-central1"
_CLAUDE_VERSION = "vertex-2023-10-16"


def _fit_gemini(model: ModelRef) -> Fit:
    """Whether this wire fits; longer names are tuned models, left to litellm."""
    is_plain = model.provider == "vertex_ai" and model.model_id.startswith("gemini-")
    return "yes" if is_plain else "no"


def _fit_claude(model: ModelRef) -> Fit:
    is_claude = model.provider == "vertex_ai" and model.model_id.startswith("claude-")
    return "yes" if is_claude else "no"


def _ask_gemini(
    request: WireRequest, environ: Mapping[str, str], _known: Known
) -> tuple[Address, JsonObject]:
    place = f"publishers/google/models/{request.model_id}:streamGenerateContent?alt=sse"
    return _address(request, environ, place, {}), gemini.request_body(request)


def _ask_claude(
    request: WireRequest, environ: Mapping[str, str], known: Known
) -> tuple[Address, JsonObject]:
    body = anthropic.request_body(request, known)
    headers = anthropic.protocol_headers(body)
    del headers["anthropic-version"]
    body = {name: value for name, value in body.items() if name != "model"}
    place = f"publishers/anthropic/models/{request.model_id}:streamRawPredict"
    return _address(request, environ, place, headers), body | {"anthropic_version": _CLAUDE_VERSION}


def _address(
    request: WireRequest, environ: Mapping[str, str], place: str, headers: dict[str, str]
) -> Address:
    """The address at which the project's location serves `place`; with a key, or an account.

    Raises:
        MissingKeyError: No project is set.
    """
    project = next(filter(None, map(environ.get, _PROJECTS)), "")
    location = next(filter(None, map(environ.get, _LOCATIONS)), _USUAL_LOCATION)
    key = key_of(request, environ, "VERTEX_API_KEY")
    if not project and not key:
        raise MissingKeyError(_PROJECTS[0])
    host = "aiplatform" if location == "global" else f"{location}-aiplatform"
    home = request.base_url or environ.get("VERTEXAI_API_BASE") or environ.get("VERTEX_API_BASE")
    home = (home or f"https://{host}.googleapis.com").rstrip("/")
    if project:
        place = f"projects/{project}/locations/{location}/{place}"
    url = f"{home}/{place}" if re.search(r"/v1\w*$", home) else f"{home}/v1/{place}"
    if key:
        return Address(url, {**headers, "x-goog-api-key": key})
    return Address(url, headers, None if request.base_url else GoogleAccount)


VERTEX_GEMINI: Final = http_wire(
    "vertex-gemini",
    _fit_gemini,
    gemini.GEMINI.write,
    _ask_gemini,
    gemini.GeminiReading,
    prefixes=(_PREFIX,),
)
VERTEX_CLAUDE: Final = http_wire(
    "vertex-claude",
    _fit_claude,
    anthropic.ANTHROPIC.write,
    _ask_claude,
    anthropic.AnthropicReading,
    prefixes=(_PREFIX,),
    spare_fields=anthropic.ANTHROPIC.spare_fields,
)
