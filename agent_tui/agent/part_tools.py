"""The tools of a conversation with those that parts bring while the program runs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.agent.part import Part
from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.tools.base import PreparedCall, Toolbox, ToolContext, UnderstoodCall


@dataclass(frozen=True, slots=True)
class ToolboxWithParts:
    """A `Toolbox`: the tools of `own`, then those of `parts`, which never replace one of `own`."""

    own: Toolbox
    parts: Callable[[], Iterable[Part]]

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The specs for the model, ours first."""
        return (*self.own.specs, *(spec for box in self._brought() for spec in box.specs))

    @property
    def short_specs(self) -> tuple[ToolSpec, ...]:
        """The same tools with shorter texts."""
        brought = (spec for box in self._brought() for spec in box.short_specs)
        return (*self.own.short_specs, *brought)

    def translate_call(self, name: str, arguments: JsonObject, cwd: Path) -> UnderstoodCall:
        """A call translated to these tools, even if made in the terms of other agents."""
        return self._holder(name).translate_call(name, arguments, cwd)

    def check(self, name: str, arguments: JsonObject) -> None:
        """Validate a call without reading any file.

        Raises:
            ToolError: Unknown tool or wrong arguments.
        """
        self._holder(name).check(name, arguments)

    def prepare(self, name: str, arguments: JsonObject, context: ToolContext) -> PreparedCall:
        """Validate the call and determine its intent.

        Raises:
            ToolError: Unknown tool, wrong arguments, or a call that cannot work.
        """
        return self._holder(name).prepare(name, arguments, context)

    def _brought(self) -> Sequence[Toolbox]:
        return [box for part in self.parts() if (box := part.toolbox()) is not None]

    def _holder(self, name: str) -> Toolbox:
        """The toolbox with the tool `name`; `own` if none has it."""
        holders = [box for box in (self.own, *self._brought()) if _holds(box, name)]
        return holders[0] if holders else self.own


def _holds(box: Toolbox, name: str) -> bool:
    return any(spec.name == name for spec in box.specs)
