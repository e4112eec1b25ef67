"""A model's server that sends without end: what comes is bounded, said, and the turn is over."""

import asyncio
import json

import pytest

from agent_tui.events import RetryScheduled, TextDelta, ToolFinished
from agent_tui.providers.transport.serving import MAX_REPLY_CHARS
from tests.faults.conversation import FINE, Conversation, failed, shown_text, succeeded
from tests.faults.table import NOTE, WIRES, Wire
from tests.support.openai_server import Call, OpenAiServer, Reply
from tests.support.runtime import of_kind

pytestmark = pytest.mark.asyncio(loop_scope="session")

MEGABYTE = "All work and no play. " * 45_000
FLOOD = 200
"""Megabytes; what is sent without end is sent to be given up long before."""


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "kind", [pytest.param("text", marks=pytest.mark.thorough), "arguments", "calls"]
)
async def test_a_reply_without_end_is_given_up_and_not_asked_for_again(
    talk: Conversation, server: OpenAiServer, wire: Wire, kind: str
):
    path = json.dumps({"command": MEGABYTE})[:-2] * 30
    endless = {
        "text": Reply(text=(MEGABYTE,) * FLOOD),
        "arguments": Reply(text="Now. ", tool_calls=(Call("bash", path, pieces=1_000),)),
        "calls": Reply(text="Now. ", tool_calls=(NOTE,) * 1_000),
    }
    events = await talk.say("hello", endless[kind])
    error = failed(events)
    assert ("more than 256 tool calls" if kind == "calls" else "an endless reply") in error
    assert of_kind(events, RetryScheduled) == []
    assert of_kind(events, ToolFinished) == []
    assert len(shown_text(events)) <= MAX_REPLY_CHARS
    assert talk.times_run == 0
    assert kind == "calls" or await asyncio.to_thread(server.wait_for_disconnects)
    assert succeeded(await talk.say("and now?", *(FINE,) * 6))  # some of them for a compaction


@pytest.mark.thorough
@pytest.mark.parametrize("wire", WIRES)
async def test_a_reply_in_very_many_tiny_pieces_is_one_reply(talk: Conversation, wire: Wire):
    events = await talk.say("hello", Reply(text=("ab",) * 100_000))
    assert succeeded(events)
    assert shown_text(events) == "ab" * 100_000
    assert len(of_kind(events, TextDelta)) < 20_000
    assert talk.replies[-1].text == "ab" * 100_000
    assert succeeded(await talk.say("and now?", FINE))
