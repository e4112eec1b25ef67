"""Anthropic's own protocol through the real litellm worker."""

import json

import pytest

from agent_tui.messages import (
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.providers.base import (
    FinishChunk,
    ModelRef,
    ModelRequest,
    ThinkingChunk,
    UsageChunk,
)
from agent_tui.providers.host import ProviderHost
from tests.providers.requests import READ, collect, failing, text_of
from tests.support.openai_server import (
    Failure,
    OpenAiServer,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_anthropic_gets_cached_prefixes_and_its_signed_thinking_back(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.pages["/v1/messages"] = Failure(200, ANTHROPIC_STREAM, content_type="text/event-stream")
    thinking = ThinkingContent(thinking="hm", signature="c2ln")
    messages = (
        UserMessage(content="hello"),
        AssistantMessage(
            content=(thinking, TextContent(text="Look."), ToolCall(id="toolu_1", name="read")),
            provider="anthropic",
            model="claude-sonnet-4-5",
        ),
        ToolResultMessage(
            tool_call_id="toolu_1", tool_name="read", content=(TextContent(text="1"),)
        ),
    )
    request = ModelRequest(
        ModelRef("anthropic/claude-sonnet-4-5", server.base_url.removesuffix("/v1"), "THE_KEY"),
        "Be brief.",
        messages,
        (READ,),
        thinking="low",
    )
    chunks = await collect(host, request)
    body = server.requests[0].body
    assert body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert body["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "hm",
        "signature": "c2ln",
    }
    assert body["thinking"]["type"] == "enabled"
    assert body["max_tokens"] > 8_000
    thoughts = [chunk for chunk in chunks if isinstance(chunk, ThinkingChunk)]
    signed, redacted = thoughts[:-1], thoughts[-1]
    assert "".join(chunk.text for chunk in signed) == "let me think"
    assert [c.signature for c in signed if c.signature is not None] == ["c2lnbmVk"]
    assert redacted == ThinkingChunk("", "b3BhcXVl", redacted=True)
    assert text_of(chunks) == "Hi."
    assert chunks[-1] == FinishChunk("stop")
    assert isinstance(chunks[-2], UsageChunk)
    usage = chunks[-2].usage
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output) == (5, 90, 10, 6)


async def test_an_anthropic_stream_without_its_end_is_an_interruption(
    host: ProviderHost, server: OpenAiServer
) -> None:
    cut = ANTHROPIC_STREAM[: ANTHROPIC_STREAM.index("event: message_delta")]
    server.pages["/v1/messages"] = Failure(200, cut, content_type="text/event-stream")
    address = server.base_url.removesuffix("/v1")
    request = ModelRequest(
        ModelRef("anthropic/claude-sonnet-4-5", address, "THE_KEY"), "", (UserMessage(content="x"),)
    )
    received, error = await failing(host, request)
    assert text_of(received) == "Hi."
    assert error.kind == "interrupted"


ANTHROPIC_STREAM = "".join(
    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
    for event in (
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": [],
                "usage": {
                    "input_tokens": 5,
                    "cache_read_input_tokens": 90,
                    "cache_creation_input_tokens": 10,
                    "output_tokens": 1,
                },
            },
        },
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "let me "},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "think"},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "c2lnbmVk"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "redacted_thinking", "data": "b3BhcXVl"},
        },
        {"type": "content_block_stop", "index": 1},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "text", "text": ""},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "text_delta", "text": "Hi."},
        },
        {"type": "content_block_stop", "index": 2},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 6},
        },
        {"type": "message_stop"},
    )
)
