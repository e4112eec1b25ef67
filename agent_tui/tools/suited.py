"""Which of the tools that do the same a model is offered."""

import re
from collections.abc import Sequence
from typing import Final

from agent_tui.messages import ToolSpec

_TRAINED_ON_PATCHES = re.compile(
    r"(?:^|[/:._-])(?:gpt-(?:4\.1|[5-9]|oss)|o[34](?:-|$)|codex)", re.IGNORECASE
)
"""Since GPT-4.1 OpenAI trains its models on patches in the V4A form (its prompting guide)."""

_FOR_OTHERS: Final = "edit"
_FOR_PATCHERS: Final = "apply_patch"


def suited_tools(specs: Sequence[ToolSpec], model_id: str) -> tuple[ToolSpec, ...]:
    """`specs` without the way of editing that `model_id` was not trained on."""
    left_out = _FOR_OTHERS if _TRAINED_ON_PATCHES.search(model_id) else _FOR_PATCHERS
    return tuple(spec for spec in specs if spec.name != left_out)
