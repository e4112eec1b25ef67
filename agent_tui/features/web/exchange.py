"""The messages between `fetch` and its process."""

import json
from dataclasses import asdict, dataclass

from pydantic import JsonValue

from agent_tui.errors import ToolError


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """What to fetch, and whether this machine and private networks may be accessed."""

    url: str
    may_be_private: bool

    def to_json(self) -> bytes:
        """The request as the process reads it."""
        return json.dumps(asdict(self)).encode()


@dataclass(frozen=True, slots=True)
class Fetched:
    """The text of a page.

    Attributes:
        url: Its address, after redirects.
        media_type: As the server names it.
        text: Markdown for HTML, else the text unchanged.
        is_cut: Whether the page is longer than the part that was read.
    """

    url: str
    media_type: str
    text: str
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Moved:
    """The page has moved to another site, which was not requested: `url` is its address."""

    url: str


def answer_of(printed: bytes) -> Fetched | Moved:
    """The process's output, as a value.

    Raises:
        ToolError: The page cannot be read, or the process failed.
    """
    try:
        answer: JsonValue = json.loads(printed)
    except ValueError:
        answer = None
    match answer:
        case {"error": str(error)}:
            raise ToolError(error)
        case {"moved_to": str(url)}:
            return Moved(url)
        case {"url": str(url), "media_type": str(kind), "text": str(text), "is_cut": bool(is_cut)}:
            return Fetched(url, kind, text, is_cut)
        case _:
            raise ToolError("The page could not be read.")
