"""Azure's addresses for OpenAI's models (the v1 API of a resource) and Claude, and its keys."""

import re
from collections.abc import Mapping

from agent_tui.providers.wires.base import Address, MissingKeyError, WireRequest, key_of

_KEY_VARIABLES = ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY")
_AI_KEY_VARIABLES = ("AZURE_AI_API_KEY", "AZURE_API_KEY")


def openai_address(request: WireRequest, environ: Mapping[str, str], path: str) -> Address:
    """The address `path` of the v1 API, which needs no version; deployments are its models.

    Raises:
        MissingKeyError: The resource or its key is not set.
    """
    home = re.sub(r"/(?:openai(?:/v1)?/?)?$", "", _home(request, environ, "AZURE_API_BASE"))
    headers: dict[str, str] = {}
    if key := key_of(request, environ, *_KEY_VARIABLES):
        headers["api-key"] = key
    elif (token := environ.get("AZURE_AD_TOKEN")) and not request.base_url:
        headers["authorization"] = f"Bearer {token}"
    elif not request.base_url:
        raise MissingKeyError(_KEY_VARIABLES[0])
    return Address(f"{home}/openai/v1/{path}", headers)


def claude_address(request: WireRequest, environ: Mapping[str, str]) -> Address:
    """The address at which the resource speaks Anthropic's protocol.

    Raises:
        MissingKeyError: The resource or its key is not set.
    """
    home = _home(request, environ, "AZURE_AI_API_BASE", "AZURE_API_BASE")
    home = re.sub(r"(?:/anthropic)?(?:/v1)?(?:/messages)?/?$", "", home)
    key = key_of(request, environ, *_AI_KEY_VARIABLES)
    if not key and not request.base_url:
        raise MissingKeyError(_AI_KEY_VARIABLES[0])
    return Address(f"{home}/anthropic/v1/messages", {"x-api-key": key} if key else {})


def _home(request: WireRequest, environ: Mapping[str, str], *names: str) -> str:
    home = request.base_url or next(filter(None, map(environ.get, names)), "")
    if not home:
        raise MissingKeyError(names[0])
    return home
