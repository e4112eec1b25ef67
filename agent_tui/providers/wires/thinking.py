"""How much a model is asked to think, in the terms of its protocol."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from agent_tui.providers.base import ThinkingEffort

BUDGET_TOKENS: Final[Mapping[ThinkingEffort, int]] = MappingProxyType(
    {"low": 4_000, "medium": 10_000, "high": 16_000, "xhigh": 32_000, "max": 32_000}
)
"""For protocols that want a number; beyond 32,000 Anthropic's own guide sees little gain."""


def effort(level: ThinkingEffort, known: Mapping[str, JsonValue]) -> str:
    """`level` as an effort that the model takes.

    Args:
        level: Any but ``off``.
        known: What litellm's table says of the model. The two highest efforts are only for
            models of which it says so; ``high`` is the most of others.
    """
    if level == "max" and known.get("supports_max_reasoning_effort") is not True:
        level = "xhigh"
    if level == "xhigh" and known.get("supports_xhigh_reasoning_effort") is not True:
        return "max" if known.get("supports_max_reasoning_effort") is True else "high"
    return level
