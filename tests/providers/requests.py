"""Sending requests to a provider in tests, and reading what comes back."""

import json
from contextlib import aclosing

import pytest

from agent_tui.messages import ToolSpec, UserMessage
from agent_tui.providers.base import (
    Chunk,
    ModelRef,
    ModelRequest,
    Provider,
    ProviderError,
    TextChunk,
    ToolCallChunk,
)
from tests.support.openai_server import OpenAiServer

READ = ToolSpec(name="read", description="Read a file.", parameters={"type": "object"})


def request_to(
    server: OpenAiServer, text: str = "hello", *, key: str = "THE_KEY", name: str = "some-model"
) -> ModelRequest:
    """A request with a tool to a model of `server`'s."""
    return ModelRequest(
        model=ModelRef(name, server.base_url, key),
        system="Be brief.",
        messages=(UserMessage(content=text),),
        tools=(READ,),
    )


def request_at(base_url: str, name: str = "some-model") -> ModelRequest:
    """A request to a model at `base_url`."""
    return ModelRequest(ModelRef(name, base_url, "THE_KEY"), "", (UserMessage(content="hello"),))


async def collect(host: Provider, request: ModelRequest) -> list[Chunk]:
    """Everything a request yields."""
    async with aclosing(host.stream(request)) as chunks:
        return [chunk async for chunk in chunks]


async def failing(host: Provider, request: ModelRequest) -> tuple[list[Chunk], ProviderError]:
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


def arguments_by_index(chunks: list[Chunk]) -> dict[int, object]:
    """The parsed arguments of each call."""
    texts: dict[int, str] = {}
    for chunk in chunks:
        if isinstance(chunk, ToolCallChunk):
            texts[chunk.index] = texts.get(chunk.index, "") + chunk.arguments_json
    return {index: json.loads(text) for index, text in texts.items()}
