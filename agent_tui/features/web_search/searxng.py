"""Asks a SearXNG server: one GET request, answered with JSON."""

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pydantic import JsonValue

from agent_tui._version import __version__
from agent_tui.errors import ToolError
from agent_tui.features.web_search.found import Found, Links
from agent_tui.messages import JsonObject
from agent_tui.providers.wires.parts import as_object, object_at, objects_at, text_at

if TYPE_CHECKING:
    import httpx

_WAIT_S: Final = 30.0
"""Seconds for the whole search; the server waits for its engines a few seconds."""

_MOST_BYTES: Final = 4_000_000
_LOOPBACK: Final = ("all://127.0.0.1", "all://localhost", "all://[::1]")
_NO_JSON: Final = (
    "{host} refused a search ({status}). A SearXNG server must offer JSON: the user can add json "
    "to search.formats in its settings.yml."
)


async def ask_searxng(url: str, query: str) -> Found:
    """What the server at `url` finds for `query`; its first results, with excerpts.

    Args:
        url: Of the server, or of its ``/search``; parameters in it are kept.
        query: The text.

    Raises:
        ToolError: It cannot be reached, or did not answer with results.
    """
    return read_results(urlsplit(url).hostname or url, await _get(url, query))


def read_results(host: str, answer: JsonObject) -> Found:
    """The results in SearXNG's JSON.

    Raises:
        ToolError: It is some other JSON.
    """
    if not isinstance(answer.get("results"), list):
        raise ToolError(f"{host} did not answer with search results. Check search.url.")
    links = Links()
    for result in objects_at(answer, "results"):
        links.add(text_at(result, "url"), text_at(result, "title"), text_at(result, "content"))
    given = answer.get("answers")
    texts = [_answer_text(one) for one in given] if isinstance(given, list) else []
    return Found(host, "\n".join(filter(None, texts)), links.listed(), note=_silent(answer))


def _answer_text(given: JsonValue) -> str:
    text = given if isinstance(given, str) else text_at(as_object(given), "answer")
    return " ".join(text.split())


def _silent(answer: JsonObject) -> str:
    """That engines did not answer, if there are no results; else empty."""
    silent = answer.get("unresponsive_engines")
    names = (
        [str(one[0]) for one in silent if isinstance(one, list) and one]
        if (isinstance(silent, list) and not answer.get("results"))
        else []
    )
    return f"Its search engines did not answer: {', '.join(names[:10])}." if names else ""


async def _get(url: str, query: str) -> JsonObject:
    import httpx

    host = urlsplit(url).hostname or url
    try:
        async with asyncio.timeout(_WAIT_S), await asyncio.to_thread(_new_client) as client:
            address = httpx.URL(url)
            path = address.path.rstrip("/").removesuffix("/search") + "/search"
            address = address.copy_with(path=path).copy_merge_params({"q": query, "format": "json"})
            async with client.stream("GET", address) as response:
                return _read_answer(host, response, await _body(response))
    except TimeoutError:
        raise ToolError(f"{host} did not answer within {_WAIT_S:.0f} s.") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        why = str(error) or type(error).__name__
        raise ToolError(
            f"{host} cannot be reached: {why}. The user set this server in search.url."
        ) from error


def _new_client() -> "httpx.AsyncClient":
    import httpx

    headers = {"accept": "application/json", "user-agent": f"agent-tui/{__version__}"}
    return httpx.AsyncClient(headers=headers, mounts=dict.fromkeys(_LOOPBACK), timeout=_WAIT_S)


async def _body(response: "httpx.Response") -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _MOST_BYTES:
            break
    return bytes(body)


def _read_answer(host: str, response: "httpx.Response", body: bytes) -> JsonObject:
    status = f"{response.status_code} {response.reason_phrase}".strip()
    if response.has_redirect_location:
        raise ToolError(f"{host} redirects. The user can set search.url to the new address.")
    if response.status_code == HTTPStatus.FORBIDDEN:
        raise ToolError(_NO_JSON.format(host=host, status=status))
    if response.status_code != HTTPStatus.OK:
        raise ToolError(f"{host} refused a search: {status}.")
    try:
        parsed: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        parsed = None
    return object_at({"answer": parsed}, "answer")
