"""The search tools that providers run within a request: what they are sent, and what they bring.

Each follows its provider's public reference, as of November 2026.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Final

from agent_tui.features.web_search.found import Links
from agent_tui.messages import Cost, JsonObject, Usage
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.providers.wires.parts import count_at, object_at, objects_at, text_at
from agent_tui.providers.wires.table import wires_to

_MOST_SEARCHES: Final = 5
"""Searches in one request, where the provider lets us limit them: each costs."""

_XAI_HOME: Final = "https://api.x.ai/v1"
_XAI_TICKS_PER_USD: Final = 10_000_000_000
_PER_MILLION: Final = 1_000_000


class ProviderSearch(ABC):
    """A `ServerTool` that searches the web, and what one request brought.

    Args:
        model: The model of the conversation.
        prices: What is known of it, if the request names it differently and so finds no prices.

    Attributes:
        fee_usd: US dollars for each search, at list prices of November 2026.
        links: The pages.
        searches: How many searches the provider counted.
        failures: Why searches failed, in the provider's words.
    """

    fee_usd: ClassVar[float] = 0.0

    def __init__(self, model: ModelRef, prices: ModelInfo | None = None) -> None:
        self._model = model
        self._prices = prices
        self.begin()

    def begin(self) -> None:
        """See `ServerTool.begin`."""
        self.links = Links()
        self.searches = 0
        self.failures: list[str] = []
        self._billed_usd: float | None = None

    @abstractmethod
    def add_to(self, body: JsonObject) -> JsonObject:
        """See `ServerTool.add_to`."""

    @abstractmethod
    def read(self, event: JsonObject) -> None:
        """See `ServerTool.read`."""

    def charge(self, usage: Usage) -> Usage:
        """See `ServerTool.charge`; what the provider billed counts instead of list prices."""
        cost = usage.cost if self._prices is None else _cost(usage, self._prices)
        fees = 0.0 if self._model.base_url else self._fees_usd()
        total = cost.total + fees if self._billed_usd is None else self._billed_usd
        return usage.model_copy(update={"cost": cost.model_copy(update={"total": total})})

    def _fees_usd(self) -> float:
        return self.searches * self.fee_usd

    def answer(self, text: str) -> str:
        """The reply's `text` with the numbers of the links that it cites."""
        return text


class AnthropicSearch(ProviderSearch):
    """platform.claude.com/docs: Web search tool. It costs $10 per 1,000 searches."""

    fee_usd = 0.01

    def begin(self) -> None:
        """See `ServerTool.begin`."""
        super().begin()
        self._text: list[str] = []
        self._cited: dict[int, None] = {}

    def add_to(self, body: JsonObject) -> JsonObject:
        """See `ServerTool.add_to`."""
        tool: JsonObject = {
            "type": "web_search_20250305",  # every model takes it; newer ones need code execution
            "name": "web_search",
            "max_uses": _MOST_SEARCHES,
        }
        return {**body, "tools": [tool]}

    def read(self, event: JsonObject) -> None:
        """See `ServerTool.read`: text, then the citations of its block."""
        block, delta = object_at(event, "content_block"), object_at(event, "delta")
        match event.get("type"), block.get("type") or delta.get("type"):
            case "content_block_start", "server_tool_use" if self._text:
                self._text.append("\n\n")
            case "content_block_start", "web_search_tool_result":
                for result in objects_at(block, "content"):
                    self.links.add(text_at(result, "url"), text_at(result, "title"))
                if code := text_at(object_at(block, "content"), "error_code"):
                    self.failures.append(code.replace("_", " "))
            case "content_block_delta", "citations_delta":
                source = object_at(delta, "citation")
                number = self.links.cite(text_at(source, "url"), text_at(source, "title"))
                self._cited[number] = None
            case "content_block_delta", "text_delta":
                self._text.append(text_at(delta, "text"))
            case "content_block_stop", _:
                self._text += [f"[{number}]" for number in self._cited if number]
                self._cited.clear()
            case "message_delta", _:
                used = object_at(object_at(event, "usage"), "server_tool_use")
                self.searches = count_at(used, "web_search_requests") or self.searches
            case _:
                pass

    def answer(self, text: str) -> str:
        """The text with the number of each link after what it supports."""
        return "".join(self._text)


class ResponsesSearch(ProviderSearch):
    """developers.openai.com: Web search. It costs $10 per 1,000 searches; answers hold links."""

    fee_usd = 0.01

    def add_to(self, body: JsonObject) -> JsonObject:
        """See `ServerTool.add_to`."""
        include = ["web_search_call.action.sources"]
        return {**body, "tools": [{"type": "web_search"}], "include": [*include]}

    def read(self, event: JsonObject) -> None:
        """See `ServerTool.read`."""
        match event.get("type"):
            case "response.output_text.annotation.added":
                self._cite(object_at(event, "annotation"))
            case "response.output_item.done":
                self._read_item(object_at(event, "item"))
            case "response.completed" | "response.incomplete" | "response.done":
                self._end(object_at(event, "response"))
            case _:
                pass

    def _read_item(self, item: JsonObject) -> None:
        action = object_at(item, "action")
        if item.get("type") == "web_search_call" and action.get("type") in ("search", None):
            self.searches += 1
            if item.get("status") == "failed":
                self.failures.append("a search failed")
            for source in objects_at(action, "sources"):
                self.links.add(text_at(source, "url"))
        for part in objects_at(item, "content"):
            for annotation in objects_at(part, "annotations"):
                self._cite(annotation)

    def _cite(self, annotation: JsonObject) -> None:
        if annotation.get("type") == "url_citation":
            self.links.cite(text_at(annotation, "url"), text_at(annotation, "title"))

    def _end(self, response: JsonObject) -> None:
        """Take what only the last event has."""


class XaiSearch(ResponsesSearch):
    """docs.x.ai: Web search. It costs $5 per 1,000 calls; the reply says what was billed."""

    fee_usd = 0.005

    def add_to(self, body: JsonObject) -> JsonObject:
        """See `ServerTool.add_to`."""
        items = objects_at(body, "input")
        told = (
            {**one, "role": "system"} if one.get("role") == "developer" else one for one in items
        )
        return {**body, "input": [*told], "tools": [{"type": "web_search"}]}

    def _end(self, response: JsonObject) -> None:
        usage = object_at(response, "usage")
        if ticks := count_at(usage, "cost_in_usd_ticks"):
            self._billed_usd = ticks / _XAI_TICKS_PER_USD
        sources = response.get("citations")
        for url in sources if isinstance(sources, list) else ():
            if isinstance(url, str):
                self.links.add(url)


class GeminiSearch(ProviderSearch):
    """ai.google.dev: Grounding with Google Search. It costs $14 per 1,000 searches from Gemini 3.

    Before Gemini 3, it costs $35 per 1,000 requests that searched. A free allowance is not counted.
    """

    fee_usd = 0.014
    request_fee_usd: ClassVar[float] = 0.035

    def begin(self) -> None:
        """See `ServerTool.begin`."""
        super().begin()
        self._grounding: JsonObject = {}

    def add_to(self, body: JsonObject) -> JsonObject:
        """See `ServerTool.add_to`."""
        return {**body, "tools": [{"google_search": {}}]}

    def read(self, event: JsonObject) -> None:
        """See `ServerTool.read`: the last event that names sources counts."""
        for candidate in objects_at(event, "candidates")[:1]:
            if grounding := object_at(candidate, "groundingMetadata"):
                self._grounding = grounding
        queries = self._grounding.get("webSearchQueries")
        self.searches = len(queries) if isinstance(queries, list) else 0

    def _fees_usd(self) -> float:
        if self._model.model_id.startswith(("gemini-1", "gemini-2")):
            return self.request_fee_usd if self.searches else 0.0
        return super()._fees_usd()

    def answer(self, text: str) -> str:
        """The text with the number of each link after what it supports."""
        chunks = [
            object_at(chunk, "web") for chunk in objects_at(self._grounding, "groundingChunks")
        ]
        marks: list[tuple[int, bytes]] = []
        for end, indices in sorted(self._supports()):
            cited = (chunks[at] for at in indices if at < len(chunks))
            numbers = [self.links.cite(text_at(one, "uri"), text_at(one, "title")) for one in cited]
            marks.append((end, "".join(f"[{number}]" for number in numbers if number).encode()))
        for chunk in chunks:
            self.links.add(text_at(chunk, "uri"), text_at(chunk, "title"))
        data = text.encode()
        for end, mark in reversed(marks):
            data = data[:end] + mark + data[end:]
        return data.decode("utf-8", "replace")

    def _supports(self) -> Iterator[tuple[int, list[int]]]:
        """Where supported text ends, in bytes of UTF-8, and the indices of its chunks."""
        for support in objects_at(self._grounding, "groundingSupports"):
            indices = support.get("groundingChunkIndices")
            end = count_at(object_at(support, "segment"), "endIndex")
            if isinstance(indices, list) and end:
                yield end, [at for at in indices if isinstance(at, int) and at >= 0]


class OpenRouterSearch(ProviderSearch):
    """openrouter.ai/docs: Web search server tool. The reply says what was billed."""

    def add_to(self, body: JsonObject) -> JsonObject:
        """See `ServerTool.add_to`."""
        tool: JsonObject = {
            "type": "openrouter:web_search",
            "parameters": {"max_uses": _MOST_SEARCHES},
        }
        return {**body, "tools": [tool]}

    def read(self, event: JsonObject) -> None:
        """See `ServerTool.read`."""
        usage = object_at(event, "usage")
        used = object_at(usage, "server_tool_use_details") or object_at(usage, "server_tool_use")
        self.searches = count_at(used, "web_search_requests") or self.searches
        cost = usage.get("cost")
        if isinstance(cost, int | float) and 0 <= cost < _PER_MILLION:
            self._billed_usd = float(cost)
        for choice in objects_at(event, "choices")[:1]:
            said = object_at(choice, "delta") or object_at(choice, "message")
            for annotation in objects_at(said, "annotations"):
                source = object_at(annotation, "url_citation")
                self.links.cite(text_at(source, "url"), text_at(source, "title"))


def find_search(model: ModelRef) -> tuple[ModelRef, type[ProviderSearch]] | None:
    """How the provider of `model` searches the web; None if it does not, as far as we know.

    Returns:
        How the model is called, as its provider may search by another protocol only; and the tool.
    """
    match model.provider, wires_to(model)[0].name:
        case "" | "anthropic", "anthropic":
            return model, AnthropicSearch
        case "" | "openai", "responses":
            return model, ResponsesSearch
        case "openai", "completions" if not model.base_url:
            return replace(model, name=f"openai/responses/{model.model_id}"), ResponsesSearch
        case "xai", "completions" if not model.base_url:
            key = model.api_key_env or "XAI_API_KEY"
            return ModelRef(f"openai/responses/{model.model_id}", _XAI_HOME, key), XaiSearch
        case "gemini" | "vertex_ai", "gemini" | "vertex-gemini":
            return model, GeminiSearch
        case "openrouter", "completions":
            return model, OpenRouterSearch
        case _:
            return None


def _cost(usage: Usage, prices: ModelInfo) -> Cost:
    """What the tokens of `usage` cost, if the request named the model differently."""
    fresh, output = prices.input_price or 0.0, prices.output_price or 0.0
    cached = fresh if prices.cache_read_price is None else prices.cache_read_price
    cost = Cost(
        input=usage.input * fresh / _PER_MILLION,
        output=usage.output * output / _PER_MILLION,
        cache_read=usage.cache_read * cached / _PER_MILLION,
    )
    return cost.model_copy(update={"total": cost.input + cost.output + cost.cache_read})
