"""One server for all tests of this room."""

from collections.abc import Iterator

import pytest

from tests.support.openai_server import OpenAiServer


@pytest.fixture(scope="session")
def session_server() -> Iterator[OpenAiServer]:
    """The server behind `server`."""
    with OpenAiServer() as running:
        yield running


@pytest.fixture
def server(session_server: OpenAiServer) -> OpenAiServer:
    """A server with nothing recorded and nothing to play."""
    session_server.reset()
    return session_server
