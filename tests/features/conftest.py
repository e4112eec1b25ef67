"""What tests of features have in common with those of tools and providers."""

from tests.providers.conftest import server, session_server
from tests.tools.conftest import context, emitted, project, workspace

__all__ = ["context", "emitted", "project", "server", "session_server", "workspace"]
