"""The provider of the tour's replies."""

from agent_tui.features.tour.replies import DEMO_MODEL, DEMO_WINDOW, demo_reply
from agent_tui.features.tour.scripted import ScriptedProvider
from agent_tui.providers.base import ModelInfo
from agent_tui.providers.registry import ModelProvider

_MODEL = ModelInfo(DEMO_MODEL.name, DEMO_WINDOW, DEMO_WINDOW // 8, source="table")

PROVIDER = ModelProvider("scripted", (_MODEL,), ScriptedProvider(demo_reply).stream, via="")
"""Its model is in no list of models."""
