"""The `web_search` tool: an answer from the web, with links."""

import asyncio
import hashlib
import os
from abc import abstractmethod
from dataclasses import dataclass
from typing import Final

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.features.web_search.found import Found
from agent_tui.messages import ToolDetails
from agent_tui.safe_text import printable_line, strip_control_characters
from agent_tui.secret_text import holds_value, mask_values
from agent_tui.tools.base import Ability, Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.registry import OfferedTool, ToolHost, offer_tool
from agent_tui.tools.shorten import keep_head, keep_output, plain_text

WEB_SEARCH: Final = "web_search"
_MOST_QUERY_CHARS: Final = 1_000


class WebSearches(Ability):
    """Searches the web for a conversation."""

    unavailable = "The web cannot be searched here."

    @property
    @abstractmethod
    def by(self) -> str:
        """Who would search, in words for the user.

        Raises:
            ToolError: Nobody can; the text names the settings that change it.
        """

    @abstractmethod
    async def search(self, query: str) -> Found:
        """Search for `query`.

        Raises:
            ToolError: Nothing was found out; the text says why and what the user can do.
        """


class WebSearchArguments(ToolArguments):
    """Arguments of `web_search`."""

    query: str = Field(min_length=1, max_length=_MOST_QUERY_CHARS)


@dataclass(frozen=True, slots=True)
class WebSearchTool:
    """Gives the model what a search of the web finds."""

    name: str = WEB_SEARCH
    description: str = (
        "Search the web.\n"
        "Give a full question or precise terms, with names and versions; no private data. "
        "You get an answer with links, which fetch reads."
    )
    arguments_type: type[WebSearchArguments] = WebSearchArguments

    def intent(self, arguments: WebSearchArguments, context: ToolContext) -> Intent:
        """To send the query to who searches; rules match the query.

        Raises:
            ToolError: Nobody can search, or the query is empty or holds a key.
        """
        query = _text_to_send(arguments, context)
        there = (one for one in context.abilities if isinstance(one, WebSearches))
        by = next((one.by for one in there), "who searches for you")
        return Intent(
            title=f"{WEB_SEARCH} {query}",
            access="query",
            host=f"{by} for a search of the web",
            body=query,
            fingerprint=hashlib.sha256(f"{by}\n{query}".encode()).hexdigest(),
        )

    async def run(self, arguments: WebSearchArguments, context: ToolContext) -> ToolOutput:
        """The answer and the links, shortened if long, with the whole in a file.

        Raises:
            ToolError: The search failed; the text says why and what the user can do.
        """
        query = _text_to_send(arguments, context)
        try:
            found = await context.use(WebSearches).search(query)
        except ToolError as error:  # it may repeat what a server said
            raise ToolError(_harmless(str(error), context)) from error
        return await asyncio.to_thread(_make_output, query, found, context)


def make_tool(_host: ToolHost) -> OfferedTool:
    """The tool, as it is offered."""
    return offer_tool(WebSearchTool(), is_seldom=True)


def _text_to_send(arguments: WebSearchArguments, context: ToolContext) -> str:
    """The query as it leaves this machine.

    Raises:
        ToolError: It is empty or holds a key.
    """
    query = printable_line(" ".join(arguments.query.split()), _MOST_QUERY_CHARS)
    if not query:
        raise ToolError("The query is empty.")
    if any(holds_value(text, context.secrets) for text in (arguments.query, query)):
        raise ToolError("The query contains a key, so it was not sent.")
    return query


def _harmless(text: str, context: ToolContext) -> str:
    return mask_values(strip_control_characters(plain_text(text)), context.secrets).strip()


def _make_output(query: str, found: Found, context: ToolContext) -> ToolOutput:
    text = _harmless(found.to_text(query), context)
    limits = context.limits
    kept = keep_head(text, max_lines=limits.max_lines, max_bytes=limits.max_bytes)
    path = keep_output(text, context.output_dir, WEB_SEARCH, ".md") if kept.is_cut else None
    where = f" The whole result is in {path}: use read." if path else ""
    count = len(found.links)
    cost = f", ${found.cost_usd:.4f}" if found.cost_usd else ""
    details = ToolDetails(
        summary=f"{count} link{'' if count == 1 else 's'}{cost}",
        truncated=kept.is_cut,
        full_output_path=None if path is None else os.fspath(path),
    )
    return ToolOutput(f"{kept.text}\n[cut.{where}]" if kept.is_cut else text, details)
