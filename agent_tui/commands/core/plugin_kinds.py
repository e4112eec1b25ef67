"""The table of what other packages can bring; a new kind is one row."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from agent_tui.commands.core.command import Command
from agent_tui.commands.core.plugins import AnyKind, Kind
from agent_tui.sessions.importers.builder import ImportFormat
from agent_tui.sessions.importers.formats import FORMATS
from agent_tui.sessions.importers.guard import guarded_import

if TYPE_CHECKING:
    from agent_tui.api.tools import FunctionTool


def _tool_type() -> "type[FunctionTool[..., object]]":
    from agent_tui.api.tools import FunctionTool  # most of the program, which shell commands spare

    return FunctionTool


def _tool_names() -> Iterable[str]:
    from agent_tui.tools.registry import default_toolbox

    return (spec.name for spec in default_toolbox().specs)


TOOLS: Final = Kind("agent_tui.tools", "tool", _tool_type, reserved=_tool_names)
COMMANDS: Final = Kind("agent_tui.commands", "command", lambda: Command)
"""The registry of commands keeps the program's own names: it knows them after the first paint."""

IMPORTERS: Final = Kind(
    "agent_tui.importers",
    "ImportFormat",
    lambda: ImportFormat,
    lambda: FORMATS,
    guarded=guarded_import,
)

KINDS: Final[tuple[AnyKind, ...]] = (TOOLS, COMMANDS, IMPORTERS)
