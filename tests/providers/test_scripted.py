"""The scripted provider behaves as a real one does."""

import asyncio
from contextlib import aclosing

import pytest

from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import (
    Message,
    UserMessage,
)
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelRef,
    ModelRequest,
    ProviderError,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)


def request(*messages: Message, purpose: str = "turn") -> ModelRequest:
    """A request to a scripted model."""
    kind = "summary" if purpose == "summary" else "turn"
    return ModelRequest(
        ModelRef("scripted/model"), "", messages or (UserMessage(content="hi"),), purpose=kind
    )


async def collect(provider: ScriptedProvider, asked: ModelRequest) -> list[Chunk]:
    """Everything a request yields."""
    async with aclosing(provider.stream(asked)) as chunks:
        return [chunk async for chunk in chunks]


async def test_a_reply_is_thinking_text_calls_usage_and_the_finish_in_small_pieces() -> None:
    reply = Reply(text="a longer text in pieces", thinking="hm", tool_calls=(call("c", "ls"),))
    provider = ScriptedProvider([reply])
    chunks = await collect(provider, request())
    kinds = list(dict.fromkeys(type(chunk) for chunk in chunks))
    assert kinds == [ThinkingChunk, TextChunk, ToolCallChunk, UsageChunk, FinishChunk]
    assert "".join(c.text for c in chunks if isinstance(c, TextChunk)) == reply.text
    assert len([c for c in chunks if isinstance(c, TextChunk)]) > 1
    assert chunks[-1] == FinishChunk("toolUse")
    assert provider.remaining == 0


async def test_a_long_text_comes_in_larger_pieces_not_in_more() -> None:
    reply = Reply(text="word " * 200_000, tool_calls=(call("c", "ls", path="a" * 1_000_000),))
    chunks = await collect(ScriptedProvider([reply]), request())
    texts = [chunk for chunk in chunks if isinstance(chunk, TextChunk)]
    assert "".join(chunk.text for chunk in texts) == reply.text
    assert len(texts) <= 500
    assert len(chunks) <= 1_010


async def test_requests_are_recorded_and_a_script_that_is_over_says_so() -> None:
    provider = ScriptedProvider([])
    with pytest.raises(ProviderError, match="script"):
        await collect(provider, request())
    assert provider.requests == [request(*provider.requests[0].messages)]


async def test_an_error_comes_after_what_was_said_and_a_cut_is_an_interruption() -> None:
    provider = ScriptedProvider(
        [Reply(text="so far", error=ProviderError("server", "boom")), Reply(text="x", cut=True)]
    )
    async with aclosing(provider.stream(request())) as chunks:
        assert await anext(chunks) == TextChunk("so far")
        with pytest.raises(ProviderError, match="boom"):
            await anext(chunks)
    with pytest.raises(ProviderError) as raised:
        await collect(provider, request())
    assert raised.value.kind == "interrupted"


async def test_a_closed_stream_is_counted_and_sends_nothing_more() -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([Reply(text="one", tool_calls=(call("c", "ls"),), gate=gate)])
    async with aclosing(provider.stream(request())) as chunks:
        assert await anext(chunks) == TextChunk("one")
    assert provider.closed_streams == 1


async def test_a_script_may_be_a_function_of_the_request() -> None:
    provider = ScriptedProvider(lambda asked: Reply(text=asked.model.name))
    chunks = await collect(provider, ModelRequest(ModelRef("x/y"), "", ()))
    assert chunks[0] == TextChunk("x/y")
