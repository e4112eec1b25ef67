"""Names and fields that a server does not know are learned from what it refuses."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agent_tui.messages import UserMessage
from agent_tui.providers.base import Chunk, ModelRef, ModelRequest, NoticeChunk
from agent_tui.providers.host import ProviderHost
from tests.providers.requests import READ, collect, failing, text_of
from tests.support.openai_server import Failure, OpenAiServer, RecordedRequest, Reply, failure

pytestmark = pytest.mark.asyncio(loop_scope="session")


def request_to(server: OpenAiServer, name: str) -> ModelRequest:
    return ModelRequest(
        ModelRef(name, server.base_url, "THE_KEY"),
        "",
        (UserMessage(content="hello"),),
        (READ,),
        max_output_tokens=20_000,
        thinking="high",
        cache_key="session-1",
    )


def notices(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks if isinstance(chunk, NoticeChunk)]


def openai_refusal(text: str, param: str) -> Failure:
    error = {"message": text, "type": "invalid_request_error", "param": param, "code": None}
    return Failure(400, json.dumps({"error": error}))


NEWER = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead."
)
PYDANTIC = Failure(
    422,
    '{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],'
    '"msg":"Extra inputs are not permitted"}]}',
)


@pytest.mark.parametrize(
    ("refusal", "field"),
    [
        (openai_refusal(NEWER, "max_tokens"), "max_tokens"),
        (PYDANTIC, "stream_options"),
        (failure(400, "unknown argument supplied: reasoning_effort"), "reasoning_effort"),
        (
            openai_refusal("'xhigh' is not one of the supported values", "reasoning_effort"),
            "reasoning_effort",
        ),
        (failure(500, "unknown field 'stream_options'"), "stream_options"),
    ],
    ids=["OpenAI", "FastAPI", "an older server", "a field beside the text", "a 500"],
)
async def test_a_field_that_is_refused_is_left_out_from_then_on_and_told_once(
    host: ProviderHost, server: OpenAiServer, refusal: Failure, field: str
) -> None:
    request = request_to(server, f"model-without-{field}-{refusal.status}-{len(refusal.body)}")
    server.play(refusal, Reply(text="one"), Reply(text="two"))
    first, second = await collect(host, request), await collect(host, request)
    assert (text_of(first), text_of(second)) == ("one", "two")
    assert [field in chat.body for chat in server.chats] == [True, False, False]
    (notice,) = notices(first)
    assert f"'{field}'" in notice
    assert not notices(second)


async def test_a_limit_that_is_called_otherwise_is_kept(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(openai_refusal(NEWER, "max_tokens"), Reply(text="ok"))
    await collect(host, request_to(server, "newer-limit"))
    assert server.chats[1].body["max_completion_tokens"] == 20_000


async def test_each_field_of_several_costs_one_request(
    host: ProviderHost, server: OpenAiServer
) -> None:
    known = {"model", "messages", "stream", "tools"}

    def strict(request: RecordedRequest) -> Reply | Failure:
        unknown = sorted(set(request.body) - known)
        return failure(400, f"unknown field: {unknown[0]}") if unknown else Reply(text="ok")

    server.play(*[strict] * 6)
    assert text_of(await collect(host, request_to(server, "strict-server"))) == "ok"
    assert set(server.chats[-1].body) == known


async def test_what_a_request_cannot_do_without_stays_refused(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(failure(400, "messages.0.content: may not be empty"))
    _, error = await failing(host, request_to(server, "strict-content"))
    assert (error.kind, len(server.chats)) == ("bad_request", 1)


async def test_a_model_named_for_thinking_keeps_its_thinking_after_another_fault(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(failure(400, "messages.0.content: may not be empty"), Reply(text="ok"))
    request = request_to(server, "kimi-k2-thinking")
    await failing(host, request)
    await collect(host, request)
    assert [chat.body["reasoning_effort"] for chat in server.chats] == ["high", "high"]


async def test_fields_inside_others_are_left_out_alone(
    host: ProviderHost, server: OpenAiServer
) -> None:
    asked: list[dict[str, Any]] = []
    refusal = openai_refusal(
        "Your organization must be verified to generate reasoning summaries.", "reasoning.summary"
    )
    server.pages["/v1/responses"] = refusal
    await failing(host, request_to(server, "openai/gpt-5-unverified"))
    asked = [request.body for request in server.requests]
    assert asked[0]["reasoning"] == {"effort": "high", "summary": "auto"}
    assert asked[1]["reasoning"] == {"effort": "high"}


@pytest.mark.parametrize(
    ("name", "at_server", "first"),
    [
        ("Qwen/Qwen3-Coder", "Qwen/Qwen3-Coder", "Qwen/Qwen3-Coder"),
        ("meta-llama/Llama-4", "meta-llama/Llama-4", "meta-llama/Llama-4"),
        ("openai/qwen3", "qwen3", "qwen3"),
        ("openai/gpt-oss-20b", "openai/gpt-oss-20b", "gpt-oss-20b"),
        ("hosted_vllm/Qwen/Qwen3", "Qwen/Qwen3", "hosted_vllm/Qwen/Qwen3"),
        ("anthropic/claude-opus-4.5", "anthropic/claude-opus-4.5", "claude-opus-4.5"),
        ("x-ai/grok-4", "x-ai/grok-4", "x-ai/grok-4"),
    ],
)
async def test_a_server_is_asked_for_a_model_by_the_name_it_knows(
    host: ProviderHost, server: OpenAiServer, name: str, at_server: str, first: str
) -> None:
    def only_this(request: RecordedRequest) -> Reply | Failure:
        asked = request.body["model"]
        is_known = asked == at_server
        return Reply(text="ok") if is_known else failure(404, f"The model `{asked}` does not exist")

    server.play(*[only_this] * 4)
    for _ in range(2):
        assert text_of(await collect(host, request_to(server, name))) == "ok"
    asked = [chat.body["model"] for chat in server.chats]
    assert asked == [*([first] if first != at_server else []), at_server, at_server]


async def test_a_name_that_no_server_knows_is_refused_as_it_was_given(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(*[lambda r: failure(404, f"The model `{r.body['model']}` does not exist")] * 2)
    _, error = await failing(host, request_to(server, "openai/qwen-9"))
    assert error.kind == "not_found"
    assert "The model `qwen-9` does not exist" in error.message


@pytest.mark.parametrize("name", ["anthropic/claude-3-haiku", "gemini/gemini-2.0-flash"])
async def test_a_server_without_a_models_own_protocol_is_spoken_to_in_chat(
    host: ProviderHost, server: OpenAiServer, name: str
) -> None:
    address = "models/gemini-2.0-flash:streamGenerateContent?alt=sse"
    server.pages |= {f"/v1/{path}": failure(404, "Not Found") for path in ("messages", address)}
    server.play(Reply(text="ok"), Reply(text="ok"))
    for _ in range(2):
        assert text_of(await collect(host, request_to(server, name))) == "ok"
    chats = [request for request in server.requests if "completions" in request.path]
    assert (len(server.requests), len(chats)) == (3, 2)
