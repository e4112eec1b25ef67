"""The strategy ``agent``: a model compresses a copy of the context with four tools."""

from agent_tui.compaction.strategies.base import BuiltInStrategy
from agent_tui.features.strategies.agent.strategy import CompressionAgent

agent = BuiltInStrategy("the model edits a copy of the conversation", CompressionAgent)
