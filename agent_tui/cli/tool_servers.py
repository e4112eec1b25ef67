"""Makes the servers whose tools the model may call, if a feature brings them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from agent_tui.config import Settings
from agent_tui.feature import load_object, own_features
from agent_tui.permissions.trust import FolderTrust
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.server_spec import ServerSpec
from agent_tui.tools.tool_servers import ToolServers


@dataclass(frozen=True, slots=True)
class ServersHost:
    """What the program gives the servers of a run.

    Attributes:
        settings: Name the user's own servers.
        trust: Says whether a project's file may be opened.
        keeper: Starts the servers' processes.
        environ: agent-tui's environment.
        own_keys: Variables with model providers' keys, which no server receives.
        cwd: The folder to begin in.
        of_editor: Servers that an editor names.
    """

    settings: Settings
    trust: FolderTrust
    keeper: ProcessKeeper
    environ: Mapping[str, str]
    own_keys: Collection[str]
    cwd: Path
    of_editor: Sequence[ServerSpec]


def make_tool_servers(host: ServersHost) -> ToolServers:
    """The servers of a run; nothing is read or started yet."""
    names = filter(None, (feature.tool_servers for feature in own_features()))
    if (name := next(names, None)) is None:
        return ToolServers()
    return cast("Callable[[ServersHost], ToolServers]", load_object(name))(host)
