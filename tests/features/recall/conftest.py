"""Fixtures of recall, with those of the agent."""

from tests.agent.conftest import stage

__all__ = ["stage"]
