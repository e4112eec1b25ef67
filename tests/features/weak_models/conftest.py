"""The server of the tests of providers."""

from tests.providers.conftest import server, session_server

__all__ = ["server", "session_server"]
