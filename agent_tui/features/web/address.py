"""The address of a page."""

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit, urlunsplit

from agent_tui.errors import ToolError

_HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|[0-9a-f:.]*:[0-9a-f:.]*")
_NEVER = re.compile(r"[\s\\\x00-\x1f\x7f]")
_PATH_CHARS = "/%:@!$&'()*+,;=~-._"
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class WebUrl:
    """A URL without a fragment, in ASCII, and its lowercase host."""

    text: str
    host: str

    def __str__(self) -> str:
        return self.text


def web_url(given: str) -> WebUrl:
    """Parse `given`; https if it names no scheme.

    Raises:
        ToolError: It is not a URL that can be fetched.
    """
    shown = repr(given[:_SHOWN_CHARS])
    address = given.strip()
    address = address if "://" in address else f"https://{address}"
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").rstrip(".")
        host = host if ":" in host else host.encode("idna").decode("ascii").lower()
        port = parts.port
    except (UnicodeError, ValueError) as error:
        raise ToolError(f"{shown} is not a valid URL: {error}.") from error
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host) or _NEVER.search(address):
        raise ToolError(f"{shown} is not the URL of a page: give one with http or https.")
    if parts.netloc.endswith(":"):  # "file:/x" is not a host of that name
        raise ToolError(f"{shown} is not the URL of a page.")
    if "@" in parts.netloc:
        raise ToolError("URLs with a user name or password are not fetched.")
    netloc = f"[{host}]" if ":" in host else host
    netloc = netloc if port is None else f"{netloc}:{port}"
    path = quote(parts.path or "/", safe=_PATH_CHARS)
    query = quote(parts.query, safe=f"{_PATH_CHARS}?")
    return WebUrl(urlunsplit((parts.scheme, netloc, path, query, "")), host)
