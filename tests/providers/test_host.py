"""The real litellm worker against a real server: what comes back, and what failing looks like."""

import asyncio
import dataclasses
import json
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from agent_tui.messages import AssistantMessage, StopReason, TextContent, UserMessage
from agent_tui.providers.base import (
    FaultKind,
    FinishChunk,
    ModelRef,
    ModelRequest,
    ProviderError,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
)
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.wires.parts import GO_ON
from tests.providers.requests import arguments_by_index, collect, failing, request_to, text_of
from tests.support.openai_server import (
    Answer,
    Call,
    Failure,
    NoHeaders,
    OpenAiServer,
    Reply,
    bad_gateway,
    bad_key,
    context_overflow,
    failure,
    no_such_model,
    out_of_quota,
    overloaded,
    rate_limited,
)
from tests.support.provider_process import IMPATIENCE_S, LITELLMS, SECRET, process_of
from tests.support.wire_rules import openai_problems

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_litellm_takes_a_request_with_tools(host: ProviderHost) -> None:
    # Its 1.106 and 1.92 fail on any call with tools: the rehearsal makes one.
    await host.warm(ModelRef("perplexity/some-model"))
    assert process_of(host).warm_problem == ""


async def test_text_usage_and_the_finish_reason_come_in_this_order(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="hello big world", usage=(100, 7), cached_tokens=40))
    chunks = await collect(host, request_to(server))
    assert text_of(chunks) == "hello big world"
    assert isinstance(chunks[-2], UsageChunk)
    usage = chunks[-2].usage
    assert (usage.input, usage.cache_read, usage.output) == (60, 40, 7)
    assert not usage.is_estimate
    assert chunks[-1] == FinishChunk("stop")


async def test_the_request_is_what_the_protocol_demands(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="ok"))
    await collect(host, request_to(server, "lone \ud800 surrogate"))
    body = server.chats[0].body
    assert openai_problems(body["messages"]) == []
    assert body["model"] == "some-model"
    assert body["tools"][0]["function"]["name"] == "read"
    assert body["stream_options"] == {"include_usage": True}
    assert server.chats[0].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("stop_reason", ["error", "aborted", "length"])
async def test_a_reply_that_was_cut_is_followed_by_a_word_to_go_on(
    host: ProviderHost, server: OpenAiServer, stop_reason: StopReason
) -> None:
    # Newer Claude models and thinking refuse a request that ends with the model's own words.
    cut = AssistantMessage(content=(TextContent(text="The sky is"),), stop_reason=stop_reason)
    request = request_to(server)
    server.play(Reply(text="blue."))
    await collect(host, dataclasses.replace(request, messages=(*request.messages, cut)))
    sent = server.chats[0].body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert sent[2]["content"] == "The sky is"
    assert sent[3]["content"] == GO_ON
    assert openai_problems(sent) == []


async def test_thinking_and_calls_in_pieces_come_whole(
    host: ProviderHost, server: OpenAiServer
) -> None:
    calls = (Call("read", {"path": "a.py"}), Call("read", {"path": "b.py"}))
    server.play(Reply(thinking="let me see", text="Reading.", tool_calls=calls))
    chunks = await collect(host, request_to(server))
    assert "".join(c.text for c in chunks if isinstance(c, ThinkingChunk)) == "let me see"
    assert arguments_by_index(chunks) == {0: {"path": "a.py"}, 1: {"path": "b.py"}}
    assert chunks[-1] == FinishChunk("toolUse")


async def test_calls_that_share_an_index_are_told_apart(
    host: ProviderHost, server: OpenAiServer
) -> None:
    calls = (
        Call("read", {"path": "a.py"}, id="one", index=0),
        Call("read", {"path": "b.py"}, id="two", index=0),
    )
    server.play(Reply(tool_calls=calls))
    chunks = await collect(host, request_to(server))
    assert arguments_by_index(chunks) == {0: {"path": "a.py"}, 1: {"path": "b.py"}}


async def test_reasoning_under_its_other_name_is_thinking(
    host: ProviderHost, server: OpenAiServer
) -> None:
    piece = {"id": "x", "choices": [{"index": 0, "delta": {"reasoning": "hm"}}]}
    server.play(Reply(raw_events=(json.dumps(piece),)))
    assert ThinkingChunk("hm") in await collect(host, request_to(server))


async def test_line_ends_comments_and_a_missing_done_do_not_matter(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="all well", newline="\r\n", comments=True, done=False))
    chunks = await collect(host, request_to(server))
    assert text_of(chunks) == "all well"
    assert chunks[-1] == FinishChunk("stop")


async def test_a_delta_of_ten_megabytes_arrives(host: ProviderHost, server: OpenAiServer) -> None:
    server.play(Reply(text=("x" * 10_000_000,)))
    assert len(text_of(await collect(host, request_to(server)))) == 10_000_000


async def test_a_character_cut_in_two_by_the_server_is_joined(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text=("smile \ud83d", "\ude00 and \ud83d", "no pair")))
    assert text_of(await collect(host, request_to(server))) == "smile 😀 and \ufffdno pair"


async def test_a_model_that_repeats_itself_is_not_cut_short(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text=("same ",) * 150))
    assert text_of(await collect(host, request_to(server))) == "same " * 150


async def test_missing_usage_is_an_estimate(host: ProviderHost, server: OpenAiServer) -> None:
    server.play(Reply(text="no usage", usage=None))
    usage = [c.usage for c in await collect(host, request_to(server)) if isinstance(c, UsageChunk)]
    assert [u.is_estimate for u in usage] == [True]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [("length", "length"), ("content_filter", "contentFilter"), ("stop", "stop")],
)
async def test_finish_reasons_are_ours(
    host: ProviderHost, server: OpenAiServer, sent: str, expected: str
) -> None:
    server.play(Reply(text="x", finish=sent))
    last = (await collect(host, request_to(server)))[-1]
    assert isinstance(last, FinishChunk)
    assert last.reason == expected


async def test_a_stream_that_its_server_ended_is_whole_without_a_finish_reason(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="405", finish="", done=True))
    chunks = await collect(host, request_to(server))
    assert text_of(chunks) == "405"
    assert chunks[-1] == FinishChunk("stop")


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="so far", finish="", done=False),
        Reply(text="so far", finish="", done=False, usage=None),
        Reply(text="so far", ending="close"),
        Reply(text="so far", ending="reset"),
        Reply(text="so far", ending="half"),
        Reply(text="so far", ending="broken"),
        Reply(text="so far", ending="error"),
        Reply(tool_calls=(Call("read", {"path": "a.py"}),), ending="close"),
    ],
    ids=lambda reply: f"{reply.ending}-{reply.done}-{len(reply.tool_calls)}",
)
async def test_a_cut_stream_is_an_interruption_after_what_came(
    host: ProviderHost, server: OpenAiServer, reply: Reply
) -> None:
    server.play(reply)
    received, error = await failing(host, request_to(server))
    assert error.kind == "interrupted"
    assert error.is_retryable
    assert text_of(received) == reply.text
    assert not any(isinstance(chunk, FinishChunk) for chunk in received)
    assert len(server.chats) == 1  # no hidden retry


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (rate_limited(), "rate_limit"),
        (out_of_quota(), "quota"),
        (context_overflow(), "context_overflow"),
        (bad_key(), "auth"),
        (failure(403, "Your account may not use this model."), "auth"),
        (no_such_model(), "not_found"),
        (bad_gateway(), "server"),
        (failure(500, "boom"), "server"),
        (failure(504, "gateway timeout"), "server"),
        (failure(408, "request timeout"), "server"),
        (failure(503, "no capacity"), "overloaded"),
        (overloaded(), "overloaded"),
        (failure(400, "tools: unknown field"), "bad_request"),
        (NoHeaders(reset=True), "network"),
    ],
)
async def test_a_refusal_has_its_kind_and_is_not_retried_behind_our_back(
    host: ProviderHost, server: OpenAiServer, answer: Answer, kind: FaultKind
) -> None:
    server.play(answer)
    received, error = await failing(host, request_to(server))
    assert (error.kind, received) == (kind, [])
    assert "some-model" in error.message
    assert error.hint
    assert "litellm" not in str(error)
    assert error.status == (answer.status if isinstance(answer, Failure) else None)
    assert len(server.chats) == 1


async def test_retry_after_is_read_as_seconds_and_as_a_date(
    host: ProviderHost, server: OpenAiServer
) -> None:
    tomorrow = format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)
    server.play(rate_limited("7"), rate_limited(tomorrow))
    _, in_seconds = await failing(host, request_to(server))
    _, by_date = await failing(host, request_to(server))
    assert in_seconds.retry_after_s == 7
    assert by_date.retry_after_s == pytest.approx(86_400, abs=600)


async def test_nobody_listening_is_a_network_fault_that_names_the_address(
    host: ProviderHost,
) -> None:
    request = ModelRequest(ModelRef("m", "http://127.0.0.1:1/v1"), "", (UserMessage(content="x"),))
    _, error = await failing(host, request)
    assert error.kind == "network"
    assert "http://127.0.0.1:1/v1" in error.message


async def test_a_missing_key_names_its_variable(host: ProviderHost) -> None:
    for name, variable in (
        ("openai/gpt-4o-mini", "OPENAI_API_KEY"),
        ("anthropic/claude-haiku-4-5", "ANTHROPIC_API_KEY"),
    ):
        request = ModelRequest(ModelRef(name), "", (UserMessage(content="x"),))
        _, error = await failing(host, request)
        assert (error.kind, variable in error.hint) == ("auth", True), str(error)


async def test_silence_ends_the_request_and_its_connection(
    impatient_host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="so far", ending="hang"), NoHeaders())
    received, in_mid_stream = await failing(impatient_host, request_to(server))
    _, before_headers = await failing(impatient_host, request_to(server))
    assert text_of(received) == "so far"
    for error in (in_mid_stream, before_headers):
        assert error.kind == "timeout"
        assert f"{IMPATIENCE_S:g} s" in error.message
    assert await asyncio.to_thread(server.wait_for_disconnects, 2)


async def test_closing_the_stream_closes_the_connection(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="one two", ending="hold"))
    async with aclosing(host.stream(request_to(server))) as chunks:
        assert isinstance(await anext(chunks), TextChunk)
        assert server.disconnects == 0
    assert await asyncio.to_thread(server.wait_for_disconnects)


async def test_cancelling_before_the_headers_closes_the_connection(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(NoHeaders())
    task = asyncio.create_task(collect(host, request_to(server)))
    assert await asyncio.to_thread(server.wait_for_requests, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.wait_for_disconnects)


async def test_requests_do_not_wait_for_one_another(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="slow", ending="hold"))
    slow = host.stream(request_to(server))
    async with aclosing(slow):
        assert isinstance(await anext(slow), TextChunk)
        server.play(Reply(text="quick"))
        assert text_of(await collect(host, request_to(server))) == "quick"
        server.release()
        assert [chunk async for chunk in slow][-1] == FinishChunk("stop")


async def test_a_key_in_a_servers_answer_does_not_reach_the_person_or_the_log(
    host: ProviderHost, server: OpenAiServer, worker_log: Path
) -> None:
    server.play(failure(401, f"Incorrect API key provided: {SECRET}."))
    _, error = await failing(host, request_to(server))
    assert "key removed" in str(error)
    assert SECRET not in str(error)
    assert not worker_log.exists() or SECRET not in worker_log.read_text(encoding="utf-8")


async def test_a_server_of_ones_own_never_gets_a_key_that_was_not_named_for_it(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="x"))
    await collect(host, request_to(server, key=""))
    assert SECRET not in json.dumps(server.chats[0].headers)


async def test_without_the_feature_a_model_without_a_wire_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_tui.providers.host.own_features", tuple)
    host = ProviderHost(log_path=tmp_path / "log", environ={})
    model = ModelRef(LITELLMS)
    await host.warm(model)
    with pytest.raises(ProviderError, match=f"cannot call {LITELLMS}") as caught:
        _ = [chunk async for chunk in host.stream(ModelRequest(model, "", ()))]
    assert "--base-url" in caught.value.hint
    host.forget_keys()
    await host.aclose()
