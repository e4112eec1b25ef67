"""Offers the tool only to a model whose user can answer."""

from collections.abc import Sequence

from agent_tui.agent.part import Part
from agent_tui.features.ask_user.tool import ASK_USER
from agent_tui.messages import ToolSpec


class AskUserPart(Part):
    """The questions of one conversation."""

    def offered(
        self, specs: Sequence[ToolSpec], window: int, *, is_planning: bool
    ) -> Sequence[ToolSpec]:
        """`specs` without the tool if nobody can answer."""
        if self.host.can_fill_forms:
            return specs
        return [spec for spec in specs if spec.name != ASK_USER]
