"""Some of the tools of a toolbox."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.tools.base import PreparedCall, Toolbox, ToolContext
from agent_tui.tools.foreign_calls import UnderstoodCall, understood


@dataclass(frozen=True, slots=True)
class ToolSubset:
    """A `Toolbox`: the tools of `whole` that are called one of `names`."""

    whole: Toolbox
    names: Collection[str]

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told, in order of use."""
        return tuple(spec for spec in self.whole.specs if spec.name in self.names)

    @property
    def short_specs(self) -> tuple[ToolSpec, ...]:
        """The same in fewer words."""
        return tuple(spec for spec in self.whole.short_specs if spec.name in self.names)

    def understood(self, name: str, arguments: JsonObject, cwd: Path) -> UnderstoodCall:
        """A call in the terms of these tools, also where it is made in those of other agents."""
        return understood(name, arguments, self.specs, cwd)

    def check(self, name: str, arguments: JsonObject) -> None:
        """Validate a call without looking at any file.

        Raises:
            ToolError: unknown tool or wrong arguments.
        """
        self._require(name)
        self.whole.check(name, arguments)

    def prepare(self, name: str, arguments: JsonObject, context: ToolContext) -> PreparedCall:
        """Validate and look ahead.

        Raises:
            ToolError: unknown tool, wrong arguments, or a call that cannot work.
        """
        self._require(name)
        return self.whole.prepare(name, arguments, context)

    def _require(self, name: str) -> None:
        offered = [spec.name for spec in self.specs]
        if name not in offered:
            raise ToolError(f"There is no tool {name!r} here. Tools: {', '.join(offered)}.")
