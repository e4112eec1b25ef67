"""What a provider refuses to have back, and servers that lack an address, cost one request."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.providers.base import ModelRef, ModelRequest
from agent_tui.providers.host import ProviderHost
from tests.providers.requests import READ, collect, failing, text_of
from tests.support.openai_server import OpenAiServer, Reply, failure

pytestmark = pytest.mark.asyncio(loop_scope="session")

REFUSED = failure(400, "messages.1.content.0: Invalid `signature` in `thinking` block")
BLOCKS: list[AssistantContent] = [
    ThinkingContent(thinking="first", signature="c2lnMQ=="),
    TextContent(text="Let me look.\n\n"),
    ThinkingContent(thinking="", signature="c2lnMg=="),
    ThinkingContent(thinking="", signature="b3BhcXVl", redacted=True),
    ToolCall(id="toolu_1", name="read", arguments={"path": "a.py"}),
]
SENT = [
    {"type": "thinking", "thinking": "first", "signature": "c2lnMQ=="},
    {"type": "text", "text": "Let me look.\n\n"},
    {"type": "thinking", "thinking": "", "signature": "c2lnMg=="},
    {"type": "redacted_thinking", "data": "b3BhcXVl"},
    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py"}},
]


def tool_round(
    server: OpenAiServer, name: str, content: Sequence[AssistantContent] = BLOCKS
) -> ModelRequest:
    """A request in the middle of a tool round that the model began itself."""
    model = ModelRef(name, server.base_url, "THE_KEY")
    reply = AssistantMessage(
        content=tuple(content), provider=model.provider, model=model.model_id, stop_reason="toolUse"
    )
    result = ToolResultMessage(
        tool_call_id="toolu_1",
        tool_name="read",
        content=(TextContent(text="no such file"),),
        is_error=True,
    )
    messages = (UserMessage(content="look"), reply, result)
    return ModelRequest(model, "Be brief.", messages, (READ,), thinking="medium")


async def test_blocks_go_back_in_order_and_an_error_is_marked(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="ok"))
    await collect(host, tool_round(server, "anthropic/claude-sonnet-4-5"))
    sent = server.chats[0].body["messages"]
    assert sent[1]["content"] == SENT
    assert sent[2]["content"][0]["is_error"] is True
    assert sent[2]["content"][-1]["cache_control"] == {"type": "ephemeral"}


async def test_thinking_that_is_refused_is_left_out_once_and_for_all(
    host: ProviderHost, server: OpenAiServer
) -> None:
    refused = ThinkingContent(thinking="not to be had back", signature="c2lnMw==")
    request = tool_round(server, "anthropic/claude-opus-4-5", (refused, BLOCKS[1], BLOCKS[4]))
    server.play(REFUSED, Reply(text="ok"), Reply(text="later"))
    assert text_of(await collect(host, request)) == "ok"
    plain = [block for block in SENT if block["type"] in ("text", "tool_use")]
    assert server.chats[1].body["messages"][1]["content"] == plain
    assert text_of(await collect(host, request)) == "later"
    assert server.chats[2].body["messages"][1]["content"] == plain
    assert len(server.chats) == 3


async def test_thinking_that_a_model_cannot_do_is_not_asked_for_again(
    host: ProviderHost, server: OpenAiServer
) -> None:
    model = ModelRef("plain-model", server.base_url, "THE_KEY")
    request = ModelRequest(model, "", (UserMessage(content="hello"),), thinking="high")
    server.play(failure(400, "unknown field: reasoning_effort"), Reply(text="ok"), Reply(text="ok"))
    for _ in range(2):
        assert text_of(await collect(host, request)) == "ok"
    asked = [request.body.get("reasoning_effort") for request in server.chats]
    assert asked == ["high", None, None]


async def test_another_fault_is_not_taken_for_one_about_thinking(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(failure(400, "tools.0: unknown field"))
    _, error = await failing(host, tool_round(server, "anthropic/claude-haiku-4-5"))
    assert error.kind == "bad_request"
    assert len(server.chats) == 1


async def test_a_server_without_the_responses_api_is_spoken_to_in_chat(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.pages["/v1/responses"] = failure(404, "Not Found")
    server.play(Reply(text="one"), Reply(text="two"))
    request = tool_round(server, "openai/gpt-5")
    request = replace(request, messages=request.messages[:1])
    assert text_of(await collect(host, request)) == "one"
    assert text_of(await collect(host, request)) == "two"
    paths = [request.path for request in server.requests]
    assert paths == ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"]


@pytest.mark.parametrize(
    ("name", "field"), [("zai/glm-4.7", "reasoning_content"), ("groq/gpt-oss", "reasoning")]
)
async def test_reasoning_goes_back_to_the_model_that_gave_it_and_to_no_other(
    host: ProviderHost, server: OpenAiServer, name: str, field: str
) -> None:
    request = tool_round(server, name)
    server.play(Reply(text="ok"), Reply(text="ok"))
    await collect(host, request)
    assert server.chats[0].body["messages"][2][field] == "first"
    other = replace(request, model=replace(request.model, name=f"{name}-x"))
    await collect(host, other)
    assert field not in server.chats[1].body["messages"][2]


async def test_a_copy_of_the_protocol_gets_its_unsigned_thinking_back_and_no_claudes(
    host: ProviderHost, server: OpenAiServer
) -> None:
    unsigned = (ThinkingContent(thinking="first"), *BLOCKS[1:2], BLOCKS[4])
    request = tool_round(server, "anthropic/glm-4.7", unsigned)
    server.play(Reply(text="ok"), Reply(text="ok"))
    await collect(host, request)
    (thought, *_) = server.chats[0].body["messages"][1]["content"]
    assert thought == {"type": "thinking", "thinking": "first", "signature": ""}
    of_claude = tool_round(server, "anthropic/claude-sonnet-4-5").messages
    await collect(host, replace(request, messages=of_claude))
    sent = server.chats[1].body["messages"][1]["content"]
    assert [block["type"] for block in sent] == ["text", "tool_use"]


async def test_what_a_call_is_sealed_with_in_chat_goes_back_with_it_to_its_model(
    host: ProviderHost, server: OpenAiServer
) -> None:
    sealed = ToolCall(
        id="toolu_1", name="read", signature='{"google":{"thought_signature":"c2ln"}}'
    )
    request = tool_round(server, "gemini-3-pro", (sealed,))
    server.play(Reply(text="ok"), Reply(text="ok"))
    await collect(host, request)
    (call,) = server.chats[0].body["messages"][2]["tool_calls"]
    assert call["extra_content"] == {"google": {"thought_signature": "c2ln"}}
    await collect(host, replace(request, model=replace(request.model, name="another")))
    assert "extra_content" not in server.chats[1].body["messages"][2]["tool_calls"][0]
