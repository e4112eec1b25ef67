"""Recorded streams of real providers through the provider process, and what is sent back."""

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from agent_tui.agent.turn.reply import ReplyBuilder
from agent_tui.messages import AssistantMessage, TextContent, ToolResultMessage, UserMessage
from agent_tui.providers.base import ModelRef, ModelRequest, ProviderError
from agent_tui.providers.host import ProviderHost
from tests.providers.recorded_replies import (
    Given,
    anthropic_reply,
    bedrock_reply,
    chat_reply,
    gemini_reply,
    responses_reply,
)
from tests.providers.requests import READ
from tests.support.recordings import RecordedServer, recording, recordings

pytestmark = pytest.mark.asyncio(loop_scope="session")

_BROKEN_OFF = ("tool_use_failed", "Token limit reached")
"""Errors in mid-stream that services really sent."""


@pytest.fixture(scope="module")
def recorded() -> Iterator[RecordedServer]:
    with RecordedServer() as running:
        yield running


async def play(
    host: ProviderHost, recorded: RecordedServer, request: ModelRequest, name: str
) -> AssistantMessage:
    """The reply to `request` while the recording `name` is played."""
    recorded.playing = recording(name)
    recorded.bodies.clear()
    reply = ReplyBuilder(request.model.provider, request.model.model_id)
    async with aclosing(host.stream(request)) as chunks:
        async for chunk in chunks:
            reply.add(chunk)
    return reply.build().message


async def next_body(
    host: ProviderHost, recorded: RecordedServer, request: ModelRequest, reply: AssistantMessage
) -> dict[str, Any]:
    """What is sent after `reply`, its calls answered, to the model that gave it."""
    results = tuple(
        ToolResultMessage(
            tool_call_id=call.id,
            tool_name=call.name,
            content=(TextContent(text="no such file"),),
            is_error=True,
        )
        for call in reply.tool_calls
    )
    after = results or (UserMessage(content="go on"),)
    messages = (*request.messages, reply, *after)
    recorded.bodies.clear()
    async with aclosing(host.stream(replace(request, messages=messages))) as chunks:
        async for _ in chunks:
            pass
    return recorded.bodies[0]


def asking(address: str, name: str) -> ModelRequest:
    return ModelRequest(
        ModelRef(name, address, "THE_KEY"),
        "Be brief.",
        (UserMessage(content="hello"),),
        (READ,),
        max_output_tokens=20_000,
        thinking="medium",
        cache_key="session-1",
    )


def check_reading(reply: AssistantMessage, given: Given) -> None:
    """Text, thinking and counts as the independent reader has them."""
    assert reply.text == given.text
    assert reply.thinking == given.thinking
    usage = reply.usage
    assert usage.input + usage.cache_read + usage.cache_write == given.input_tokens
    assert usage.output == given.output_tokens
    assert not usage.is_estimate


@pytest.mark.parametrize("name", recordings("api.anthropic.com"))
async def test_anthropic_gets_back_each_block_as_it_gave_it(
    host: ProviderHost, recorded: RecordedServer, name: str
) -> None:
    request = asking(recorded.url, "anthropic/claude-sonnet-4-5")
    given = anthropic_reply(recording(name))
    reply = await play(host, recorded, request, name)
    check_reading(reply, given)
    first = recorded.bodies[0]
    assert first["thinking"] == {"type": "enabled", "budget_tokens": 10_000}
    assert "interleaved-thinking" in recorded.headers[-1]["anthropic-beta"]
    sent = (await next_body(host, recorded, request, reply))["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    if given.items[-1]["type"] == "text":
        given.items[-1]["text"] = given.items[-1]["text"].rstrip()
    assert sent[1]["content"] == given.items
    results = [block for block in sent[2]["content"] if block["type"] == "tool_result"]
    uses = [item["id"] for item in given.items if item["type"] == "tool_use"]
    assert [result["tool_use_id"] for result in results] == uses
    assert all(result["is_error"] for result in results)


@pytest.mark.parametrize("name", recordings("/responses"))
async def test_the_responses_api_gets_back_each_item_as_it_gave_it(
    host: ProviderHost, recorded: RecordedServer, name: str
) -> None:
    request = asking(f"{recorded.url}/v1", "openai/responses/gpt-5")
    given = responses_reply(recording(name))
    reply = await play(host, recorded, request, name)
    check_reading(reply, given)
    body = recorded.bodies[0]
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["prompt_cache_key"] == "session-1"
    if not given.items:
        return
    sent = (await next_body(host, recorded, request, reply))["input"]
    back = sent[2 : 2 + len(given.items)]
    has_reasoning = False
    for mine, item in zip(back, given.items, strict=True):
        if item["type"] == "reasoning":
            has_reasoning = True
            assert mine == item
        elif item["type"] == "function_call":
            names = ("type", "call_id", "name", "arguments")
            assert {n: mine[n] for n in names} == {n: item[n] for n in names}
            assert mine.get("id") == (item["id"] if has_reasoning else None)
        else:
            assert mine.get("id") == (item["id"] if has_reasoning else None)
            assert mine.get("phase") == item.get("phase")
            said = (
                mine["content"] if isinstance(mine["content"], str) else mine["content"][0]["text"]
            )
            assert said == "".join(part["text"] for part in item["content"])
    outputs = [item["call_id"] for item in sent if item.get("type") == "function_call_output"]
    assert outputs == [i["call_id"] for i in given.items if i["type"] == "function_call"]


@pytest.mark.parametrize("name", recordings("streamGenerateContent"))
async def test_gemini_gets_back_each_part_with_its_signature(
    host: ProviderHost, recorded: RecordedServer, name: str
) -> None:
    request = asking(recorded.url, "gemini/gemini-2.5-pro")
    given = gemini_reply(recording(name))
    reply = await play(host, recorded, request, name)
    check_reading(reply, given)
    config = recorded.bodies[0]["generationConfig"]
    assert config["thinkingConfig"]["thinkingBudget"] == 10_000
    sent = (await next_body(host, recorded, request, reply))["contents"]
    assert [content["role"] for content in sent] == ["user", "model", "user"]
    assert sent[1]["parts"] == given.items


@pytest.mark.parametrize("name", recordings("chat/completions"))
async def test_chat_services_are_read_whole_and_get_their_reasoning_back(
    host: ProviderHost, recorded: RecordedServer, name: str
) -> None:
    request = asking(f"{recorded.url}/v1", "some-model")
    given = chat_reply(recording(name))
    body = recording(name).body.decode()
    if said := next((error for error in _BROKEN_OFF if error in body), ""):
        with pytest.raises(ProviderError) as caught:
            await play(host, recorded, request, name)
        assert "litellm" not in caught.value.message
        assert said in caught.value.message or "did not call a tool" in caught.value.message
        return
    reply = await play(host, recorded, request, name)
    check_reading(reply, given)
    assert [call.id for call in reply.tool_calls] == [item["id"] for item in given.items]
    sent = (await next_body(host, recorded, request, reply))["messages"]
    thoughts = sent[2].get("reasoning_content") or "".join(
        detail["text"] for detail in sent[2].get("reasoning_details", [])
    )
    assert thoughts == given.thinking


@pytest.mark.parametrize("name", recordings("converse-stream"))
async def test_bedrock_gets_back_each_block_as_it_gave_it(
    host: ProviderHost, recorded: RecordedServer, name: str
) -> None:
    given = bedrock_reply(recording(name))
    model = "nova-micro-v1" if "nova" in recording(name).address else "us.anthropic.claude-sonnet-4"
    request = asking(recorded.url, f"bedrock/{model}")
    reply = await play(host, recorded, request, name)
    check_reading(reply, given)
    sent = (await next_body(host, recorded, request, reply))["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"] == given.items
