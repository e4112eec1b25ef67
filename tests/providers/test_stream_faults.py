"""What servers and gateways put into a stream that is no part of the reply, in every protocol."""

import json
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest

from agent_tui.agent.turn.reply import ReplyBuilder
from agent_tui.messages import AssistantMessage
from agent_tui.providers.base import ProviderError, RestartChunk
from agent_tui.providers.host import ProviderHost
from tests.providers.protocols import (
    DONE,
    EVENTS,
    TOKENS,
    Protocol,
    bedrock_frames,
    in_each_protocol,
    stream_of,
)
from tests.providers.requests import request_at
from tests.support.openai_server import OpenAiServer
from tests.support.recordings import RecordedServer, Recording

pytestmark = pytest.mark.asyncio(loop_scope="session")

LLAMA_ERROR = 'error: {"code":500,"message":"The slot was lost","type":"server_error"}'
LLAMA_OVERFLOW = (
    'error: {"code":400,"message":"the request exceeds the available context size. try increasing '
    'the context size or enable context shift","type":"invalid_request_error"}'
)
FRAMES = "application/vnd.amazon.eventstream"


@dataclass
class Outcome:
    """What came of a stream."""

    reply: AssistantMessage
    restarts: int
    error: ProviderError | None


async def ask(host: ProviderHost, base_url: str, name: str) -> Outcome:
    builder, restarts = ReplyBuilder("", name), 0
    try:
        async with aclosing(host.stream(request_at(base_url, name))) as chunks:
            async for chunk in chunks:
                restarts += isinstance(chunk, RestartChunk)
                builder.add(chunk)
    except ProviderError as error:
        return Outcome(builder.build_interrupted("error"), restarts, error)
    return Outcome(builder.build().message, restarts, None)


async def play(
    host: ProviderHost, server: OpenAiServer, protocol: Protocol, *events: Any
) -> Outcome:
    """What comes of a stream of `events`: objects, or text that stands in it as it is."""
    page = stream_of(events)
    server.pages[protocol.path] = server.pages[f"{protocol.path}?alt=sse"] = page
    return await ask(host, server.base_url, protocol.model)


# Errors


@in_each_protocol
@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (LLAMA_ERROR, "interrupted", "The slot was lost"),
        (LLAMA_OVERFLOW, "context_overflow", "available context size"),
        ('error: {"code":500,"message":"Context size has been exceeded."}', "context_overflow", ""),
        ("error: it broke", "interrupted", "it broke"),
        ('event: error\ndata: {"message": "It broke", "code": 500}', "interrupted", "It broke"),
        ("event: error\ndata: it broke", "interrupted", "it broke"),
        ({"error": {"message": "Overloaded", "code": 529}}, "overloaded", "Overloaded"),
        ({"error": {"code": "insufficient_quota", "message": "Pay"}}, "quota", "Pay"),
    ],
)
async def test_an_error_of_a_running_stream_is_none_of_its_good_ends(
    host: ProviderHost, server: OpenAiServer, protocol: Protocol, error: Any, kind: str, words: str
) -> None:
    begun = protocol.events("Hi", "r1", TOKENS)[:3]
    outcome = await play(host, server, protocol, *begun, error, DONE)
    assert outcome.error is not None
    assert outcome.error.kind == kind
    assert words in outcome.error.message


async def test_the_mark_of_the_end_alone_is_no_good_end(
    host: ProviderHost, server: OpenAiServer
) -> None:
    protocol = EVENTS["completions"]
    head = protocol.events("Hi", "r1", TOKENS)[:3]
    outcome = await play(host, server, protocol, *head, DONE)
    assert outcome.error is not None
    assert outcome.error.kind == "interrupted"
    counted = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}
    outcome = await play(host, server, protocol, *head, counted, DONE)  # Snowflake's end
    assert (outcome.error, outcome.reply.text) == (None, "Hi")


@pytest.mark.parametrize(
    "event",
    [
        {
            "type": "response.failed",
            "response": {"error": {"code": "insufficient_quota", "message": "Quota exceeded"}},
        },
        {"type": "error", "code": "insufficient_quota", "message": "Quota exceeded"},
        {"type": "error", "error": {"type": "insufficient_quota", "message": "Quota exceeded"}},
    ],
)
async def test_no_quota_in_a_stream_of_responses_is_not_tried_again(
    host: ProviderHost, server: OpenAiServer, event: dict[str, Any]
) -> None:
    protocol = EVENTS["responses"]
    head = protocol.events("Hi", "r1", TOKENS)[:3]
    for begun in ((), head):
        outcome = await play(host, server, protocol, *begun, event)
        assert outcome.error is not None
        assert (outcome.error.kind, outcome.error.is_retryable) == ("quota", False)


_TOO_LARGE = {
    "type": "invalid_request_error",
    "message": "prompt is too long: 9 tokens > 8 maximum",
}
_EXCEEDED = {"code": "context_length_exceeded", "message": "Your input exceeds the context window"}


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("anthropic", {"type": "error", "error": _TOO_LARGE}),
        ("responses", {"type": "response.failed", "response": {"error": _EXCEEDED}}),
        ("responses", {"type": "error", **_EXCEEDED}),
        ("completions", {"error": _EXCEEDED}),
    ],
)
async def test_an_overflow_in_the_events_of_a_protocol_is_one(
    host: ProviderHost, server: OpenAiServer, name: str, event: dict[str, Any]
) -> None:
    protocol = EVENTS[name]
    for begun in ((), protocol.events("Hi", "r1", TOKENS)[:3]):
        outcome = await play(host, server, protocol, *begun, event)
        assert outcome.error is not None
        assert outcome.error.kind == "context_overflow"


async def test_a_picture_that_is_refused_in_the_stream_is_not_tried_again(
    host: ProviderHost, server: OpenAiServer
) -> None:
    error = {"code": "invalid_image_format", "message": "Only PNG"}
    event = {"type": "response.failed", "response": {"error": error}}
    outcome = await play(host, server, EVENTS["responses"], event)
    assert outcome.error is not None
    assert outcome.error.kind == "bad_request"


# Begun anew


@in_each_protocol
async def test_a_stream_that_begins_anew_is_the_second_reply_alone(
    host: ProviderHost, server: OpenAiServer, protocol: Protocol
) -> None:
    cut = protocol.events("wrong", "r1", (900, 900))[:4]
    outcome = await play(host, server, protocol, *cut, *protocol.events("Right.", "r2", TOKENS))
    assert (outcome.error, outcome.restarts, outcome.reply.text) == (None, 1, "Right.")
    usage = outcome.reply.usage
    assert (usage.input, usage.output) == TOKENS


async def test_frames_that_begin_anew_are_the_second_reply_alone(host: ProviderHost) -> None:
    frames = (*bedrock_frames("wrong", "", (900, 900))[:4], *bedrock_frames("Right.", "", TOKENS))
    with RecordedServer() as server:
        server.playing = Recording("", FRAMES, b"".join(frames))
        outcome = await ask(host, server.url, "bedrock/amazon.nova-pro-v1:0")
    assert (outcome.error, outcome.restarts, outcome.reply.text) == (None, 1, "Right.")


async def test_a_server_that_names_every_event_anew_sends_one_reply(
    host: ProviderHost, server: OpenAiServer
) -> None:
    protocol = EVENTS["completions"]
    events = protocol.events("Hi there.", "", TOKENS)
    for number, event in enumerate(events):
        if isinstance(event, dict):
            event["id"] = f"c{number}"
            for choice in event["choices"]:
                choice["delta"]["role"] = "assistant"
    outcome = await play(host, server, protocol, *events)
    assert (outcome.error, outcome.restarts, outcome.reply.text) == (None, 0, "Hi there.")


# What is no event


@in_each_protocol
@pytest.mark.parametrize(
    "odd", ["data:", "data: ", "data", "data:\ndata:", "data: null", "data: 5", "data: []", "id: 7"]
)
async def test_an_event_that_says_nothing_is_passed_over(
    host: ProviderHost, server: OpenAiServer, protocol: Protocol, odd: str
) -> None:
    between = (one for event in protocol.events("Hi.", "r1", TOKENS) for one in (odd, event))
    outcome = await play(host, server, protocol, *between)
    assert (outcome.error, outcome.reply.text) == (None, "Hi.")


def _with_odd_fields(value: Any, odd: Any) -> Iterator[Any]:
    """`value` with `odd` in the place of each object and list in it, one at a time."""
    if not isinstance(value, dict):
        return
    for name, inner in value.items():
        if isinstance(inner, dict | list):
            yield {**value, name: odd}
        for changed in _with_odd_fields(inner, odd):
            yield {**value, name: changed}
        if isinstance(inner, list) and inner:
            yield {**value, name: [odd]}
            for changed in _with_odd_fields(inner[0], odd):
                yield {**value, name: [changed]}


@in_each_protocol
@pytest.mark.parametrize("odd", [None, 5, [], [[]], "x", {}], ids=repr)
async def test_what_stands_in_the_place_of_an_object_is_no_crash(
    host: ProviderHost, server: OpenAiServer, protocol: Protocol, odd: Any
) -> None:
    events = protocol.events("Hi.", "r1", TOKENS)
    changed = [new for event in events for new in _with_odd_fields(event, odd)]
    outcome = await play(host, server, protocol, *changed, *events)
    assert outcome.error is None or outcome.error.kind in ("interrupted", "server")
    assert outcome.error is None or "Error" not in outcome.error.message


# Counts

_ODD_COUNTS = [
    float("nan"),
    float("inf"),
    -float("inf"),
    -3,
    10**30,
    1e308,
    "many",
    "9" * 5_000,
    None,
    True,
    [],
    {},
]


@in_each_protocol
@pytest.mark.parametrize("odd", _ODD_COUNTS, ids=lambda odd: repr(odd)[:12])
async def test_a_count_that_is_none_loses_no_reply(
    host: ProviderHost, server: OpenAiServer, protocol: Protocol, odd: Any
) -> None:
    outcome = await play(host, server, protocol, *protocol.events("Hi.", "r1", (odd, odd)))
    assert (outcome.error, outcome.reply.text) == (None, "Hi.")
    assert outcome.reply.usage.is_estimate
    assert outcome.reply.usage.input == 0


@in_each_protocol
@pytest.mark.parametrize("counts", [(5.0, 3.0), ("5", "3"), ("5.0", " 3 ")], ids=repr)
async def test_a_count_in_another_form_counts(
    host: ProviderHost, server: OpenAiServer, protocol: Protocol, counts: tuple[Any, Any]
) -> None:
    outcome = await play(host, server, protocol, *protocol.events("Hi.", "r1", counts))
    assert (outcome.reply.usage.input, outcome.reply.usage.output) == TOKENS
    assert not outcome.reply.usage.is_estimate


async def test_a_number_of_thousands_of_digits_is_no_broken_event(
    host: ProviderHost, server: OpenAiServer
) -> None:
    protocol = EVENTS["completions"]
    *head, last, done = protocol.events("Hi.", "r1", TOKENS)
    written = json.dumps(last).replace("5", "9" * 5_000)
    outcome = await play(host, server, protocol, *head, f"data: {written}", done)
    assert (outcome.error, outcome.reply.text) == (None, "Hi.")
