"""What tests of features have in common with those of tools, providers and conversations."""

from tests.agent.conftest import stage
from tests.providers.conftest import server, session_server
from tests.tools.conftest import context, emitted, project, workspace

__all__ = ["context", "emitted", "project", "server", "session_server", "stage", "workspace"]
