"""The table of what other packages can bring; a new kind is one row."""

from typing import Final

from agent_tui.api.tools import FunctionTool
from agent_tui.commands.core.command import Command
from agent_tui.commands.core.plugins import AnyKind, Kind
from agent_tui.sessions.importers.builder import ImportFormat
from agent_tui.sessions.importers.formats import FORMATS
from agent_tui.sessions.importers.guard import guarded_import
from agent_tui.tools.registry import default_toolbox

TOOLS: Final[Kind[FunctionTool[..., object]]] = Kind(
    "agent_tui.tools",
    "tool",
    FunctionTool,
    reserved=lambda: (spec.name for spec in default_toolbox().specs),
)
COMMANDS: Final = Kind("agent_tui.commands", "command", Command)
"""The registry of commands keeps the program's own names: it knows them after the first paint."""

IMPORTERS: Final = Kind(
    "agent_tui.importers", "ImportFormat", ImportFormat, lambda: FORMATS, guarded=guarded_import
)

KINDS: Final[tuple[AnyKind, ...]] = (TOOLS, COMMANDS, IMPORTERS)
