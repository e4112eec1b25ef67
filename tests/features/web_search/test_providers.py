"""What each provider is sent and what its stream brings, against a server that follows them."""

from collections.abc import Callable
from typing import Any

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.web_search.found import Found
from agent_tui.features.web_search.part import ask_provider
from agent_tui.features.web_search.server_tools import (
    AnthropicSearch,
    GeminiSearch,
    OpenRouterSearch,
    ProviderSearch,
    find_search,
)
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.providers.client import ModelClient, RequestTracker, ignore_usage, unseen
from agent_tui.providers.host import ProviderHost
from tests.support.recordings import recording
from tests.support.rows import each_row
from tests.support.search_server import (
    ANSWER,
    OTHER,
    PAGE,
    TITLE,
    Events,
    SearchServer,
    anthropic_events,
    gemini_events,
    openrouter_events,
    responses_events,
)

CLAUDE = "anthropic/claude-sonnet-4-5"


class Search:
    """Searches with a model at the server's address."""

    def __init__(self, host: ProviderHost, name: str, url: str) -> None:
        self.model = ModelRef(name, url, "A_KEY")
        self.tracker = RequestTracker(unseen, ignore_usage)
        self._client = ModelClient(host, self._wait)

    async def run(self) -> Found:
        info = ModelInfo(self.model.name, 100_000, 1_000, input_price=10.0, output_price=10.0)
        return await ask_provider(self._client, self.model, info, "what is new?", self.tracker)

    async def _wait(self, _seconds: float) -> None: ...


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "path", "events", "answer", "links"),
    [
        (CLAUDE, "/v1/messages", anthropic_events, f"{ANSWER}[1]", [PAGE, OTHER]),
        ("openai/gpt-5", "/responses", responses_events, ANSWER, [PAGE, OTHER]),
        (
            "gemini/gemini-3-pro",
            "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
            gemini_events,
            f"{ANSWER}[1]",
            [PAGE, OTHER],
        ),
        ("openrouter/a/b", "/chat/completions", openrouter_events, ANSWER, [PAGE]),
    ],
)
async def test_a_provider_is_sent_its_search_tool_alone_and_its_links_are_numbered(
    host: ProviderHost,
    server: SearchServer,
    name: str,
    path: str,
    events: Callable[[], Events],
    answer: str,
    links: list[str],
):
    server.events = lambda _body: events()
    search = Search(host, name, server.url)
    found = await search.run()
    assert (server.asked, len(server.bodies[0]["tools"])) == ([path], 1)
    assert (found.by, found.answer, found.note) == (name, answer, "")
    assert [link.url for link in found.links] == links
    assert found.links[0].title == TITLE
    assert search.tracker.total is not None
    assert search.tracker.total.output == 7


@pytest.mark.thorough
async def test_xai_is_asked_in_the_protocol_that_has_its_search(
    host: ProviderHost, server: SearchServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agent_tui.features.web_search.server_tools._XAI_HOME", server.url)
    server.events = lambda _body: responses_events(cost_in_usd_ticks=77_000_000)
    search = Search(host, "xai/grok-4", "")
    found = await search.run()
    assert server.asked == ["/responses"]
    assert server.bodies[0]["model"] == "grok-4"
    assert [item["role"] for item in server.bodies[0]["input"]] == ["system", "user"]
    assert found.cost_usd == 0.0077


@each_row(
    ("name", "url", "usage", "searches", "cost"),
    [
        (CLAUDE, "", Usage(), 3, 0.03),
        (CLAUDE, "http://127.0.0.1:1", Usage(), 3, 0.0),
        ("openai/gpt-5", "", Usage(), 1, 0.01),
        ("gemini/gemini-3-pro", "", Usage(), 2, 0.028),
        ("gemini/gemini-2.5-pro", "", Usage(), 2, 0.035),
        ("gemini/gemini-2.5-pro", "", Usage(), 0, 0.0),
        ("xai/grok-4", "", Usage(input=100_000, output=10_000), 2, 1.11),
        ("openai/gpt-4.1", "", Usage(input=100_000), 1, 1.01),
    ],
)
def test_the_fees_of_searches_are_added_at_list_prices(name, url, usage, searches, cost):
    model = ModelRef(name, url)
    way = find_search(model)
    assert way is not None
    info = ModelInfo(name, 1, 1, input_price=10.0, output_price=10.0)
    tool = way[1](model, None if way[0] == model else info)
    tool.searches = searches
    assert tool.charge(usage).cost.total == pytest.approx(cost)


@each_row(
    ("name", "url"),
    [
        ("scripted/test", ""),
        ("local/qwen", ""),
        ("mistral/x", ""),
        ("openai/qwen", "http://127.0.0.1:1234/v1"),
        ("xai/grok-4", "http://127.0.0.1:1234/v1"),
        ("bedrock/anthropic.claude-sonnet-4-5", ""),
        ("", ""),
    ],
)
def test_other_models_do_not_search(name, url):
    assert find_search(ModelRef(name, url)) is None


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("events", "says"),
    [
        (lambda: anthropic_events(error_code="too_many_requests"), "too many requests"),
        (lambda: _without_search(anthropic_events()), "answered without a search"),
    ],
)
async def test_a_reply_without_a_search_is_no_result(
    host: ProviderHost, server: SearchServer, events: Callable[[], Events], says: str
):
    def cited_by_nobody(_body: dict[str, Any]) -> Events:
        return [event for event in events() if "citation" not in str(event)]

    server.events = cited_by_nobody
    with pytest.raises(ToolError, match=f"{CLAUDE}.*{says}.*set search.url"):
        await Search(host, CLAUDE, server.url).run()


def _without_search(events: Events) -> Events:
    last = {**events[-2], "usage": {"output_tokens": 7}}
    return [*(event for event in events[:-2] if event.get("index") not in (0, 1)), last]


@pytest.mark.thorough
async def test_what_a_provider_says_against_a_search_is_told_with_the_way_out(
    host: ProviderHost, server: SearchServer
):
    said = "web search is not enabled for this organization"
    server.refusal = (400, {"error": {"type": "invalid_request_error", "message": said}})
    with pytest.raises(ToolError, match=f"did not search: .*{said}.*console.*search.url"):
        await Search(host, CLAUDE, server.url).run()


@pytest.mark.thorough
async def test_without_a_network_the_address_is_named(host: ProviderHost):
    with pytest.raises(ToolError, match=r"127\.0\.0\.1"):
        await Search(host, CLAUDE, "http://127.0.0.1:9").run()


@pytest.mark.thorough
async def test_a_stream_that_breaks_off_is_asked_again_and_counts_once(
    host: ProviderHost, server: SearchServer
):
    def events(_body: dict[str, Any]) -> Events:
        whole = anthropic_events()
        return whole[:-2] if len(server.bodies) == 1 else whole

    server.events = events
    found = await Search(host, CLAUDE, server.url).run()
    assert len(server.bodies) == 2
    assert found.answer == f"{ANSWER}[1]"


@pytest.mark.parametrize(
    ("name", "kind", "searches", "starts"),
    [
        ("057-api-anthropic-com.json", AnthropicSearch, 2, "Based on the search results"),
        ("060-api-anthropic-com.json", AnthropicSearch, 2, "Let me search"),
        ("063-api-anthropic-com.json", AnthropicSearch, 10, "I'll run these"),
        ("020-generativelanguage-googleapis-com.json", GeminiSearch, 1, ""),
        ("086-openrouter-ai.json", OpenRouterSearch, 1, ""),
    ],
)
def test_recorded_streams_are_read(
    name: str, kind: type[ProviderSearch], searches: int, starts: str
):
    tool = kind(ModelRef("a/b"))
    for event in recording(name).events:
        tool.read(event)
    text = tool.answer("")
    assert tool.searches == searches
    assert tool.failures == []
    assert text.startswith(starts)
    if kind is not OpenRouterSearch:
        assert "[1]" in text or name.startswith("063")
        assert len(tool.links.listed()) >= 5
