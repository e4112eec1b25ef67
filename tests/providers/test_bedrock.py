"""Bedrock's own protocol: what is asked, signed or with a key, and what comes in frames."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agent_tui.features.bedrock.amazon import AwsAccount
from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
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
    ToolCallChunk,
)
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.wires.base import MissingKeyError
from agent_tui.providers.wires.table import wires_to
from tests.providers.requests import READ, arguments_by_index, collect, failing, text_of
from tests.support.aws_frames import frame
from tests.support.recordings import RecordedServer, Recording

pytestmark = pytest.mark.asyncio(loop_scope="session")

_FRAMES = "application/vnd.amazon.eventstream"
CONTENT: tuple[AssistantContent, ...] = (
    ThinkingContent(thinking="first", signature="c2lnMQ=="),
    TextContent(text="Let me look."),
    ThinkingContent(thinking="", signature="b3BhcXVl", redacted=True),
    ToolCall(id="tooluse_1", name="read", arguments={"path": "a.png"}),
)


@pytest.fixture(scope="module")
def bedrock() -> Iterator[RecordedServer]:
    with RecordedServer() as running:
        yield running


def stream(*frames: bytes) -> Recording:
    return Recording("", _FRAMES, b"".join(frames))


def delta(index: int, **fields: Any) -> bytes:
    return frame("contentBlockDelta", {"contentBlockIndex": index, "delta": fields})


STOP = frame("messageStop", {"stopReason": "end_turn"})


def request_to(bedrock: RecordedServer, name: str) -> ModelRequest:
    """The middle of a tool round that the model began itself."""
    model = ModelRef(name, bedrock.url, "THE_KEY")
    reply = AssistantMessage(
        content=CONTENT, provider=model.provider, model=model.model_id, stop_reason="toolUse"
    )
    result = ToolResultMessage(
        tool_call_id="tooluse_1",
        tool_name="read",
        content=(TextContent(text="no"), ImageContent(data="aQ==", mime_type="image/png")),
        is_error=True,
    )
    messages = (UserMessage(content="look"), reply, result)
    return ModelRequest(model, "Be brief.", messages, (READ,), 20_000, "medium")


async def test_a_claude_gets_its_blocks_back_in_order_and_the_prefix_is_cached(
    host: ProviderHost, bedrock: RecordedServer
) -> None:
    bedrock.playing = stream(delta(0, text="ok"), STOP)
    request = request_to(bedrock, "bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0")
    assert text_of(await collect(host, request)) == "ok"
    body, cached = bedrock.bodies[-1], {"cachePoint": {"type": "default"}}
    assert body["system"] == [{"text": "Be brief."}, cached]
    sent = body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "first", "signature": "c2lnMQ=="}}},
        {"text": "Let me look."},
        {"reasoningContent": {"redactedContent": "b3BhcXVl"}},
        {"toolUse": {"toolUseId": "tooluse_1", "name": "read", "input": {"path": "a.png"}}},
    ]
    result = {
        "toolUseId": "tooluse_1",
        "content": [{"text": "no"}, {"image": {"format": "png", "source": {"bytes": "aQ=="}}}],
        "status": "error",
    }
    assert sent[2]["content"] == [{"toolResult": result}, cached]
    assert body["inferenceConfig"] == {"maxTokens": 20_000}
    (tool,) = body["toolConfig"]["tools"]
    assert tool["toolSpec"]["inputSchema"] == {"json": {"type": "object"}}
    assert body["additionalModelRequestFields"] == {
        "thinking": {"type": "enabled", "budget_tokens": 10_000},
        "anthropic_beta": ["interleaved-thinking-2025-05-14"],
    }


async def test_another_model_gets_neither_sealed_thinking_nor_claudes_own_fields(
    host: ProviderHost, bedrock: RecordedServer
) -> None:
    bedrock.playing = stream(delta(0, text="ok"), STOP)
    given = request_to(bedrock, "bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0")
    model = replace(given.model, name="bedrock/meta.llama4-scout-17b-instruct-v1:0")
    await collect(host, replace(given, model=model, tools=(), max_output_tokens=None))
    body = bedrock.bodies[-1]
    kinds = [next(iter(block)) for block in body["messages"][1]["content"]]
    assert kinds == ["text", "toolUse"]
    assert "status" not in body["messages"][2]["content"][-1]["toolResult"]
    assert [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]] == ["read"]
    assert not {"additionalModelRequestFields", "inferenceConfig"} & set(body)
    assert "cachePoint" not in str(body)


async def test_thinking_that_came_unsigned_stays_here(
    host: ProviderHost, bedrock: RecordedServer
) -> None:
    bedrock.playing = stream(delta(0, text="ok"), STOP)
    request = request_to(bedrock, "bedrock/deepseek.r1-v1:0")
    unsigned = (ThinkingContent(thinking="hm"), TextContent(text="Hi."))
    reply = AssistantMessage(content=unsigned, provider="bedrock", model="deepseek.r1-v1:0")
    messages = (UserMessage(content="hello"), reply, UserMessage(content="go on"))
    await collect(host, replace(request, messages=messages))
    assert bedrock.bodies[-1]["messages"][1]["content"] == [{"text": "Hi."}]


async def test_thinking_with_signatures_and_calls_come_out_of_the_frames(
    host: ProviderHost, bedrock: RecordedServer
) -> None:
    use = {"toolUse": {"toolUseId": "tooluse_2", "name": "read"}}
    bedrock.playing = stream(
        frame("messageStart", {"role": "assistant"}),
        delta(0, reasoningContent={"text": "hm"}),
        delta(0, reasoningContent={"signature": "c2ln"}),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
        delta(1, reasoningContent={"redactedContent": "b3Bh"}),
        frame("contentBlockStop", {"contentBlockIndex": 1}),
        frame("contentBlockStart", {"contentBlockIndex": 2, "start": use}),
        delta(2, toolUse={"input": '{"path"'}),
        delta(2, toolUse={"input": ': "b"}'}),
        frame("contentBlockStop", {"contentBlockIndex": 2}),
        frame("messageStop", {"stopReason": "tool_use"}),
        frame("metadata", {"usage": {"inputTokens": 5, "outputTokens": 3}}),
    )
    chunks = await collect(host, request_to(bedrock, "bedrock/anthropic.claude-sonnet-4"))
    thoughts = [chunk for chunk in chunks if isinstance(chunk, ThinkingChunk)]
    assert "".join(thought.text for thought in thoughts) == "hm"
    assert thoughts[-2].signature == "c2ln"
    assert thoughts[-1] == ThinkingChunk("", "b3Bh", redacted=True)
    assert arguments_by_index(chunks) == {2: {"path": "b"}}
    first = next(chunk for chunk in chunks if isinstance(chunk, ToolCallChunk))
    assert (first.id, first.name) == ("tooluse_2", "read")
    assert chunks[-1] == FinishChunk("toolUse")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("throttlingException", "rate_limit"),
        ("serviceUnavailableException", "overloaded"),
        ("internalServerException", "interrupted"),
        ("modelStreamErrorException", "interrupted"),
        ("validationException", "bad_request"),
    ],
)
async def test_an_exception_in_the_stream_says_what_it_is(
    host: ProviderHost, bedrock: RecordedServer, kind: str, expected: str
) -> None:
    broken = frame(kind, {"message": "It went wrong."}, "exception")
    bedrock.playing = stream(delta(0, text="Hi"), broken)
    received, error = await failing(host, request_to(bedrock, "bedrock/amazon.nova-pro-v1:0"))
    assert text_of(received) == "Hi"
    assert (error.kind, "It went wrong." in error.message) == (expected, True)


@pytest.mark.parametrize("damage", [slice(-1), slice(40, None)], ids=["cut", "damaged"])
async def test_a_stream_that_is_damaged_is_an_interruption(
    host: ProviderHost, bedrock: RecordedServer, damage: slice
) -> None:
    bedrock.playing = stream(delta(0, text="Hi"), STOP[damage])
    _, error = await failing(host, request_to(bedrock, "bedrock/amazon.nova-pro-v1:0"))
    assert error.kind == "interrupted"


async def test_a_key_is_sent_as_one(host: ProviderHost, bedrock: RecordedServer) -> None:
    bedrock.playing = stream(delta(0, text="ok"), STOP)
    await collect(host, request_to(bedrock, "bedrock/amazon.nova-pro-v1:0"))
    assert bedrock.headers[-1]["authorization"].startswith("Bearer ")


async def test_without_a_key_a_request_is_signed_for_its_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a token")
    url = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/a%3A0/converse-stream"
    headers = AwsAccount("eu-west-1").headers(url, b"{}")
    assert "/eu-west-1/bedrock/aws4_request" in headers["Authorization"]
    assert headers["X-Amz-Security-Token"] == "a token"
    assert headers["X-Amz-Date"]


async def test_nothing_to_sign_with_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(MissingKeyError, match="AWS_BEARER_TOKEN_BEDROCK"):
        AwsAccount("eu-west-1")


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0", "bedrock"),
        ("bedrock/us-west-2/anthropic.claude-v2:1", "bedrock"),
        ("bedrock/converse/amazon.nova-pro-v1:0", "bedrock"),
        ("bedrock/arn:aws:bedrock:us-east-1:1:application-inference-profile/x", "bedrock"),
        ("bedrock/invoke/anthropic.claude-v2:1", "chat"),
    ],
)
async def test_other_routes_to_bedrock_stay_with_litellm(name: str, wire: str) -> None:
    assert wires_to(ModelRef(name))[0].name == wire
