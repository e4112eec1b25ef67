"""Cohere is asked at its OpenAI-compatible address, by both of its names."""

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace

import pytest
from pydantic import JsonValue

from agent_tui.config import Settings
from agent_tui.messages import JsonObject, UserMessage
from agent_tui.providers.base import FinishChunk, ModelRef, ModelRequest, ToolCallChunk, UsageChunk
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.host import ProviderHost, Refusals
from agent_tui.providers.table import ModelTable, read_bundled_table
from agent_tui.providers.wires.base import STREAM_END, Address, Link
from tests.providers.requests import collect, failing, request_to, text_of
from tests.support.openai_server import Call, OpenAiServer, Reply

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = ("cohere/command-a-03-2025", "cohere_chat/command-a-03-2025")
KEYS = {"COHERE_API_KEY": "THE_KEY"}


@pytest.fixture(scope="module")
def bundled() -> ModelTable:
    return read_bundled_table()


@pytest.mark.parametrize("name", NAMES)
async def test_a_reply_and_a_call_arrive_without_the_option_that_it_refuses(
    host: ProviderHost, server: OpenAiServer, name: str
) -> None:
    call = Call("read", {"path": "a.py"}, id="read_a1b2")
    server.play(Reply(text="Let me look.", tool_calls=(call,), usage=(12, 3)))
    chunks = await collect(host, request_to(server, name=name))
    assert text_of(chunks) == "Let me look."
    assert [c.name for c in chunks if isinstance(c, ToolCallChunk) and c.name] == ["read"]
    assert [c.usage.input for c in chunks if isinstance(c, UsageChunk)] == [12]
    assert chunks[-1] == FinishChunk("toolUse")
    (chat,) = server.chats
    assert chat.body["model"] == "command-a-03-2025"
    assert "stream_options" not in chat.body


async def sent(
    name: str, thinking: str = "off", known: Mapping[str, JsonValue] | None = None
) -> tuple[Address, JsonObject]:
    """Where a request without a base URL goes, and its body."""
    asked: list[tuple[Address, JsonObject]] = []

    async def post(address: Address, content: bytes) -> AsyncGenerator[JsonObject, None]:
        asked.append((address, json.loads(content)))
        yield {"id": "1", "choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}
        yield STREAM_END

    request = ModelRequest(ModelRef(name), "", (UserMessage(content="hello"),))
    if thinking == "medium":
        request = replace(request, thinking="medium")
    way = Refusals().way(request)
    assert way.wire.stream is not None
    async for _ in way.wire.stream(way, Link(KEYS, lambda _name: known or {}, post)):
        pass
    return asked[0]


@pytest.mark.parametrize("name", NAMES)
async def test_its_own_address_gets_its_own_key(name: str) -> None:
    address, body = await sent(name)
    assert address.url == "https://api.cohere.ai/compatibility/v1/chat/completions"
    assert address.headers["authorization"] == "Bearer THE_KEY"
    assert body["model"] == "command-a-03-2025"


@pytest.mark.parametrize(("thinking", "effort"), [("off", "none"), ("medium", "high")])
async def test_thinking_has_the_two_levels_that_it_knows(thinking: str, effort: str) -> None:
    _, body = await sent(NAMES[0], thinking, {"supports_reasoning": True})
    assert body["reasoning_effort"] == effort
    _, body = await sent(NAMES[0], thinking, {"mode": "chat"})
    assert "reasoning_effort" not in body


@pytest.mark.parametrize("name", NAMES)
async def test_without_a_key_the_variable_to_set_is_named(host: ProviderHost, name: str) -> None:
    _, error = await failing(host, ModelRequest(ModelRef(name), "", (UserMessage(content="x"),)))
    assert error.kind == "auth"
    assert "COHERE_API_KEY" in str(error)


@pytest.mark.parametrize("name", NAMES)
async def test_the_window_and_the_price_of_a_model_are_known_by_both_names(
    bundled: ModelTable, name: str
) -> None:
    catalog = ModelCatalog(Settings(), KEYS, table=bundled, server_ports={})
    ref = catalog.resolve(name)
    info = catalog.info(ref)
    assert (ref.name, info.source, info.window) == (name, "table", 256_000)
    assert info.input_price


async def test_its_models_are_listed_once_its_key_is_set(bundled: ModelTable) -> None:
    catalog = ModelCatalog(Settings(), KEYS, table=bundled, server_ports={})
    names = [model.ref.name for model in await catalog.list_models()]
    assert NAMES[0] in names
    assert len(names) == len(set(names))
    assert NAMES[1] not in names
