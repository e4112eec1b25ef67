"""Which of several equivalent tools a model is offered.

Apart from the registry, so that opening a session does not load every tool.
"""

import re
from collections.abc import Sequence
from typing import Final

from agent_tui.messages import JsonObject, ToolSpec

_TRAINED_ON_PATCHES = re.compile(
    r"(?:^|[/:._-])(?:gpt-(?:4\.1|[5-9]|oss)|o[34](?:-|$)|codex)", re.IGNORECASE
)
"""Since GPT-4.1 OpenAI trains its models on patches in the V4A format (its prompting guide)."""

_FOR_OTHERS: Final = "edit"
_FOR_PATCHERS: Final = "apply_patch"


_RUNS_COMMANDS: Final = "bash"
_LEAVING: Final = frozenset({"outside", "why"})
_FOR_SKILLS: Final = "skill"
_FOR_PLANNING: Final = "plan"
_WRITING: Final = frozenset({"edit", "apply_patch", "write"})


def select_tools(
    specs: Sequence[ToolSpec],
    model_id: str,
    *,
    is_planning: bool = False,
    has_skills: bool = False,
    has_sandbox: bool = False,
) -> tuple[ToolSpec, ...]:
    """`specs` without tools that do not suit a model.

    Args:
        specs: All tools.
        model_id: Selects the editing tool that the model was trained on.
        is_planning: Whether it plans: then it can submit a plan, but not write. Plans are mostly
            requested at the start, where a changed prompt costs little.
        has_skills: Whether there are skills that it could load.
        has_sandbox: Whether commands run in a sandbox, so that one can ask to leave it.
    """
    has_patches = any(spec.name == _FOR_PATCHERS for spec in specs)
    patches = has_patches and _TRAINED_ON_PATCHES.search(model_id)
    left_out = {_FOR_OTHERS if patches else _FOR_PATCHERS}
    if not has_skills:
        left_out.add(_FOR_SKILLS)
    left_out |= _WRITING if is_planning else {_FOR_PLANNING}
    offered = (spec for spec in specs if spec.name not in left_out)
    return tuple(spec if has_sandbox else _without_leaving(spec) for spec in offered)


def _without_leaving(spec: ToolSpec) -> ToolSpec:
    """`spec` without the arguments that ask to leave the sandbox."""
    properties = spec.parameters.get("properties")
    if spec.name != _RUNS_COMMANDS or not isinstance(properties, dict):
        return spec
    kept: JsonObject = {name: each for name, each in properties.items() if name not in _LEAVING}
    return spec.model_copy(update={"parameters": {**spec.parameters, "properties": kept}})
