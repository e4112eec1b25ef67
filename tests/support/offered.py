"""The tools that a model is offered with the default settings and a large window."""

from collections.abc import Sequence

from agent_tui.messages import ToolSpec
from agent_tui.tools.other_tools import gather_seldom_tools
from agent_tui.tools.selection import select_tools


def offered(specs: Sequence[ToolSpec], model_id: str) -> tuple[ToolSpec, ...]:
    """Those of `specs`."""
    suited = (spec for spec in select_tools(specs, model_id) if spec.name != "delegate")
    return gather_seldom_tools(tuple(suited))
