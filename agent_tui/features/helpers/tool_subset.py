"""Some of the tools of a conversation."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.tools.base import (
    PreparedCall,
    Toolbox,
    ToolContext,
    UnderstoodCall,
)
from agent_tui.tools.foreign_calls import translate_call


@dataclass(frozen=True, slots=True)
class ToolSubset:
    """A `Toolbox`: the tools of `whole` with one of `names`."""

    whole: Toolbox
    names: Collection[str]

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The specs for the model, in order of use."""
        return tuple(spec for spec in self.whole.specs if spec.name in self.names)

    @property
    def short_specs(self) -> tuple[ToolSpec, ...]:
        """The same tools with shorter texts."""
        return tuple(spec for spec in self.whole.short_specs if spec.name in self.names)

    def translate_call(self, name: str, arguments: JsonObject, cwd: Path) -> UnderstoodCall:
        """A call translated to these tools, even if made in the terms of other agents."""
        return translate_call(name, arguments, self.specs, cwd)

    def check(self, name: str, arguments: JsonObject) -> None:
        """Validate a call without reading any file.

        Raises:
            ToolError: Unknown tool or wrong arguments.
        """
        self._require(name)
        self.whole.check(name, arguments)

    def prepare(self, name: str, arguments: JsonObject, context: ToolContext) -> PreparedCall:
        """Validate the call and determine its intent.

        Raises:
            ToolError: Unknown tool, wrong arguments, or a call that cannot work.
        """
        self._require(name)
        return self.whole.prepare(name, arguments, context)

    def _require(self, name: str) -> None:
        offer_tool = [spec.name for spec in self.specs]
        if name not in offer_tool:
            raise ToolError(f"There is no tool {name!r} here. Tools: {', '.join(offer_tool)}.")
