"""What tests of features have in common with those of tools."""

from tests.tools.conftest import context, emitted, workspace

__all__ = ["context", "emitted", "workspace"]
