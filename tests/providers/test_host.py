"""The real litellm worker against a real server: what comes back, and what failing looks like."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import psutil
import pytest

from agent_tui.messages import (
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from agent_tui.providers.base import (
    Chunk,
    FaultKind,
    FinishChunk,
    ModelRef,
    ModelRequest,
    ProviderError,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.providers.host import ProviderHost
from tests.providers.conftest import IMPATIENCE_S, SECRET
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
from tests.support.wire_rules import openai_problems

pytestmark = pytest.mark.asyncio(loop_scope="session")

READ = ToolSpec(name="read", description="Read a file.", parameters={"type": "object"})


def request_to(server: OpenAiServer, text: str = "hello", *, key: str = "THE_KEY") -> ModelRequest:
    """A request with a tool to a model of `server`'s."""
    return ModelRequest(
        model=ModelRef("some-model", server.base_url, key),
        system="Be brief.",
        messages=(UserMessage(content=text),),
        tools=(READ,),
    )


async def collect(host: ProviderHost, request: ModelRequest) -> list[Chunk]:
    """Everything a request yields."""
    async with aclosing(host.stream(request)) as chunks:
        return [chunk async for chunk in chunks]


async def failing(host: ProviderHost, request: ModelRequest) -> tuple[list[Chunk], ProviderError]:
    """What a request yields before it fails, and how it fails."""
    received: list[Chunk] = []
    try:
        async with aclosing(host.stream(request)) as chunks:
            async for chunk in chunks:
                received.append(chunk)
    except ProviderError as error:
        return received, error
    pytest.fail(f"the request did not fail but gave {received}")


def text_of(chunks: list[Chunk]) -> str:
    """All visible text."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


async def test_litellm_takes_a_request_with_tools(host: ProviderHost) -> None:
    # Its 1.106 and later, and 1.92, fail on any call with tools: the rehearsal makes one.
    await host.warm()
    assert host.warm_problem == ""


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


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="so far", finish=""),
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
    assert server.base_url in error.message or "larger than" in error.message
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
    assert by_date.retry_after_s == 60


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
    assert SECRET not in worker_log.read_text(encoding="utf-8")


async def test_a_server_of_ones_own_never_gets_a_key_that_was_not_named_for_it(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="x"))
    await collect(host, request_to(server, key=""))
    assert SECRET not in json.dumps(server.chats[0].headers)


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


async def test_a_killed_process_is_replaced_once_when_nothing_had_come(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(NoHeaders(), Reply(text="second try"))
    task = asyncio.create_task(collect(host, request_to(server)))
    assert await asyncio.to_thread(server.wait_for_requests, 1)
    first_pid = host.pid
    assert first_pid is not None
    os.kill(first_pid, signal.SIGKILL)
    assert text_of(await task) == "second try"
    assert host.pid != first_pid


async def test_a_process_killed_in_mid_stream_is_a_crash_and_the_next_request_works(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="so far", ending="hold"), Reply(text="alive"))
    stream = host.stream(request_to(server))
    async with aclosing(stream):
        await anext(stream)
        assert host.pid is not None
        os.kill(host.pid, signal.SIGKILL)
        with pytest.raises(ProviderError) as raised:
            async for _ in stream:
                pass
    assert raised.value.kind == "crashed"
    assert text_of(await collect(host, request_to(server))) == "alive"


async def test_closing_leaves_no_process(tmp_path: Path, worker_environ: dict[str, str]) -> None:
    host = ProviderHost(log_path=tmp_path / "log", idle_timeout_s=5, environ=worker_environ)
    host.start()
    while host.pid is None:
        await asyncio.sleep(0)
    pid = host.pid
    await host.aclose()
    assert not psutil.pid_exists(pid)
    assert host.pid is None


async def test_a_process_whose_parent_was_killed_ends_by_itself(
    tmp_path: Path, worker_environ: dict[str, str]
) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(tmp_path / "log"), env=worker_environ, stdout=PIPE
    )
    assert parent.stdout is not None
    worker = psutil.Process(int(await parent.stdout.readline()))
    parent.kill()
    await parent.wait()
    await asyncio.to_thread(worker.wait, 20)
    assert not worker.is_running()


async def test_only_this_machine_is_ever_connected_to(
    host: ProviderHost, server: OpenAiServer, connections: Path
) -> None:
    server.play(Reply(text="x"))
    await collect(host, request_to(server))
    addresses = set(connections.read_text(encoding="utf-8").split())
    assert addresses == {"127.0.0.1"}


PARENT = """
import asyncio, os, sys
from pathlib import Path
from agent_tui.providers.host import ProviderHost

async def main():
    host = ProviderHost(log_path=Path(sys.argv[1]), idle_timeout_s=5, environ=os.environ)
    host.start()
    while host.pid is None:
        await asyncio.sleep(0)
    print(host.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""

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


def arguments_by_index(chunks: list[Chunk]) -> dict[int, object]:
    """The parsed arguments of each call."""
    texts: dict[int, str] = {}
    for chunk in chunks:
        if isinstance(chunk, ToolCallChunk):
            texts[chunk.index] = texts.get(chunk.index, "") + chunk.arguments_json
    return {index: json.loads(text) for index, text in texts.items()}
