"""A server that checks what it is asked, and conversations with it in both protocols."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from agent_tui.providers.host import ProviderHost
from tests.faults.conversation import Conversation, model_at
from tests.faults.table import WIRES, Wire
from tests.providers.requests import collect, request_at
from tests.support.openai_server import OpenAiServer, Reply
from tests.support.request_rules import request_problems
from tests.support.runtime import Stage


@pytest.fixture(scope="session")
def running_server() -> Iterator[OpenAiServer]:
    """The server behind `server`."""
    with OpenAiServer() as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def known_server(running_server: OpenAiServer, host: ProviderHost) -> OpenAiServer:
    """The server after a reply in each protocol: what no server ever answered is given up soon."""
    for wire in WIRES:
        running_server.play(Reply(text="Hi."))
        model = model_at(running_server, wire)
        await collect(host, request_at(model.base_url, model.name))
    return running_server


@pytest.fixture
def server(running_server: OpenAiServer) -> Iterator[OpenAiServer]:
    """The server; at the end no request may have broken its protocol's rules."""
    running_server.reset()
    yield running_server
    for chat in running_server.chats:
        assert request_problems(chat) == []


@pytest.fixture
def wire() -> Wire:
    """The protocol that is spoken; tests of both choose it themselves."""
    return "openai"


@pytest_asyncio.fixture(loop_scope="session")
async def talk(
    tmp_path: Path, known_server: OpenAiServer, server: OpenAiServer, host: ProviderHost, wire: Wire
) -> AsyncIterator[Conversation]:
    conversation = Conversation(Stage(tmp_path), server, host, wire)
    yield conversation
    await conversation.runtime.aclose()


@pytest_asyncio.fixture(loop_scope="session")
async def impatient_talk(
    tmp_path: Path, server: OpenAiServer, impatient_host: ProviderHost, wire: Wire
) -> AsyncIterator[Conversation]:
    conversation = Conversation(Stage(tmp_path), server, impatient_host, wire)
    yield conversation
    await conversation.runtime.aclose()
