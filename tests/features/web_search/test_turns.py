"""Searches of a conversation: what is asked, shown, counted and kept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.session.spending import spending_of
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.errors import ToolError
from agent_tui.events import AgentEvent, ApprovalRequested, ToolFinished
from agent_tui.features.cost.command import cost_lines
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.features.web_search.found import Found, Link, Links
from agent_tui.features.web_search.part import WebSearchPart
from agent_tui.features.web_search.settings import SearchSettings
from agent_tui.features.web_search.tool import WebSearches
from agent_tui.providers.base import ModelRef
from agent_tui.providers.host import ProviderHost
from agent_tui.tools.base import ToolContext
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.shorten import OutputLimits
from tests.support.runtime import Stage, of_kind
from tests.support.search_server import ANSWER, OTHER, PAGE, TITLE, SearchServer, anthropic_events
from tests.support.tool_calls import KEEPER

QUERY = "what is new in version 3?"
SEARCH = call("c1", "web_search", query=QUERY)


class Fake(WebSearches):
    """Finds what it is given."""

    @property
    def by(self) -> str:
        return "someone"

    def __init__(self, found: Found) -> None:
        self.found = found

    async def search(self, query: str) -> Found:
        return self.found


def use_server(runtime: AgentRuntime, url: str) -> None:
    """Set ``search.url`` for the conversation."""
    services = runtime.conversation.services
    section = {"search": SearchSettings(url=url)}
    services.settings = services.settings.model_copy(update=section)


async def talk(runtime: AgentRuntime, answer: ApprovalAnswer | None = None) -> list[AgentEvent]:
    """The events of a turn; every question gets `answer`."""
    events: list[AgentEvent] = []
    async for event in runtime.submit("Look it up."):
        events.append(event)
        if isinstance(event, ApprovalRequested):
            assert answer is not None
            runtime.pending_approvals.answer(event.request.id, answer)
    return events


def results(events: list[AgentEvent]) -> list[str]:
    return [event.message.text for event in of_kind(events, ToolFinished)]


@pytest.mark.thorough
async def test_one_answer_for_the_session_allows_every_later_search(
    stage: Stage, server: SearchServer
):
    script = [Reply(tool_calls=(SEARCH,)), Reply("Read."), Reply(tool_calls=(SEARCH,)), Reply("!")]
    runtime = stage.runtime(script, mode="ask")
    use_server(runtime, server.url)
    events = await talk(runtime, ApprovalAnswer("session"))
    (asked,) = of_kind(events, ApprovalRequested)
    assert asked.request.title == f"web_search {QUERY}"
    assert (asked.request.body, asked.request.session_rule) == (QUERY, "web_search")
    assert asked.request.reason == "sends this text to 127.0.0.1 for a search of the web"
    again = await talk(runtime)
    assert len(server.asked) == 2
    assert f"[1] {TITLE}: {PAGE}" in results(again)[0]


@pytest.mark.parametrize(
    ("mode", "rules", "is_interactive", "says"),
    [
        ("ask", PermissionSettings(), False, "--allow web_search"),
        ("plan", PermissionSettings(), False, "--allow web_search"),
        ("full", PermissionSettings(deny=("web_search(* new *)",)), True, "the deny rule"),
    ],
)
async def test_nothing_is_sent_without_permission(
    stage: Stage,
    mode: PermissionMode,
    rules: PermissionSettings,
    is_interactive: bool,
    says: str,
):
    script = [Reply(tool_calls=(SEARCH,)), Reply("No.")]
    runtime = stage.runtime(script, mode=mode, permissions=rules, is_interactive=is_interactive)
    use_server(runtime, "http://127.0.0.1:9")
    assert says in results(await talk(runtime))[0]


async def test_without_anybody_who_searches_the_settings_are_named_and_nobody_is_asked(
    stage: Stage,
):
    runtime = stage.runtime([Reply(tool_calls=(SEARCH,)), Reply("No.")], mode="ask")
    (told,) = results(await talk(runtime))
    assert "cannot use scripted/test for it" in told
    assert "search.url" in told
    assert "MCP server" in told


@pytest.mark.thorough
async def test_a_provider_is_asked_apart_from_the_conversation_and_the_cost_is_told(
    stage: Stage, host: ProviderHost, server: SearchServer
):
    def events(body: dict[str, Any]) -> list[dict[str, Any]]:
        if "web_search" in [tool.get("name") for tool in body["tools"]]:
            return anthropic_events()
        if "tool_result" in str(body["messages"]):
            return _reply({"type": "text", "text": "Done."})
        use = {"type": "tool_use", "id": "t1", "name": "other_tool"}
        return _reply({**use, "input": {"name": "web_search", "arguments": {"query": QUERY}}})

    server.events = events
    model = ModelRef("anthropic/claude-sonnet-4-5", server.url, "A_KEY")
    runtime = stage.runtime(host, model=model)
    (told,) = results(await talk(runtime))
    assert told.splitlines()[0] == f"{model.name} searched for: {QUERY}"
    assert f"{ANSWER}[1]" in told
    assert f"[1] {TITLE}: {PAGE}" in told
    assert f"[2] {TITLE}: {OTHER}" in told
    asked = server.bodies[1]
    assert [tool["type"] for tool in asked["tools"]] == ["web_search_20250305"]
    assert "Look it up" not in str(asked)
    spent = {one.purpose: one for one in spending_of(runtime.conversation.log).replies}
    assert (spent["web search"].requests, spent["web search"].input_tokens) == (1, 100)
    lines = cost_lines(
        spending_of(runtime.conversation.log), runtime.conversation.totals, "", lambda _: True
    )
    assert any(line.startswith(f"  web search ({model.name}): 100 tokens in") for line in lines)


def _reply(block: dict[str, Any]) -> list[dict[str, Any]]:
    stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
    return [
        {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]


async def search(context: ToolContext, found: Found, query: str = QUERY):
    prepared = default_toolbox(KEEPER).prepare(
        "web_search", {"query": query}, replace(context, abilities=(Fake(found),))
    )
    return await prepared.run()


async def test_the_screen_shows_links_and_cost_and_a_long_result_is_kept_in_a_file(
    context: ToolContext,
):
    page = Link("https://a.test", "Page\x1b[31m key-1234")
    found = Found("someone", "word " * 2_000, (page,), cost_usd=0.0123)
    small = replace(context, limits=OutputLimits(1_000), secrets=("key-1234",))
    output = await search(small, found)
    assert output.for_person.summary == "1 link, $0.0123"
    path = output.for_person.full_output_path
    assert path is not None
    assert f"The whole result is in {path}: use read." in output.for_model
    assert len(output.for_model) < 1_500
    kept = Path(path).read_text()
    assert "https://a.test" in kept
    assert not {"\x1b", "key-1234"} & {*kept.split(), *kept}


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("find key-1234", "contains a key"),
        ("find key\u200b-1234", "contains a key"),
        ("find key\x1b[31m-1234", "contains a key"),
        ("find key-1\ufe0f234", "contains a key"),
        ("find k e y -\n1234", "contains a key"),
        ("\n ", "is empty"),
    ],
)
async def test_a_query_that_must_not_be_sent_is_refused(
    context: ToolContext, query: str, says: str
):
    with pytest.raises(ToolError, match=says):
        await search(replace(context, secrets=("key-1234",)), Found("", "", ()), query)


async def test_what_pages_say_is_harmless_text(context: ToolContext):
    links = Links()
    links.add("http://user:p@ss@a.test/x@y", "A\u202e page")
    output = await search(context, Found("someone", "an\u200bswer\x07", links.listed()))
    assert "answer" in output.for_model
    assert "[1] A page: http://a.test/x@y" in output.for_model


async def test_arguments_of_other_agents_searches_are_understood(context: ToolContext):
    given = {"query": "new", "allowed_domains": ["a.test", "b.test"], "blocked_domains": []}
    understood = default_toolbox(KEEPER).translate_call("WebSearch", given, context.cwd)  # pyright: ignore[reportArgumentType]
    assert understood.name == "web_search"
    assert understood.arguments == {"query": "new site:a.test OR site:b.test"}


async def test_a_helper_searches_with_its_own_model(stage: Stage):
    runtime = stage.runtime([Reply("Hi.")])
    part = WebSearchPart(runtime)
    helper = replace(runtime.conversation, model=ModelRef("openai/gpt-5"))
    (own,) = part.for_helper(helper).abilities(lambda _event: None)
    assert isinstance(own, WebSearches)
    assert own.by == "the provider of openai/gpt-5"
    (other,) = part.abilities(lambda _event: None)
    assert isinstance(other, WebSearches)
    with pytest.raises(ToolError, match="scripted/test"):
        assert other.by
