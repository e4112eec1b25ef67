"""What the turns of a conversation ask the servers whose tools the model may call."""

from collections.abc import Callable
from pathlib import Path

from agent_tui.tools.base import ToolOutput
from agent_tui.tools.server_offer import ServerOffer
from agent_tui.tools.shorten import OutputLimits


class RemoteTools:
    """The tools of servers. A feature overrides every method; here there are none."""

    @property
    def offer(self) -> ServerOffer:
        """What the servers add to the prompt of the current turn."""
        return ServerOffer()

    async def take_up(self, cwd: Path, tell: Callable[[str], None]) -> bool:
        """Adopt the servers' current offer for the turn that begins; returns whether it changed.

        Args:
            cwd: The workspace.
            tell: Called with a line for the user.
        """
        return False

    async def read_resource(self, server: str, uri: str, limits: OutputLimits) -> ToolOutput | None:
        """A resource as the output of a call; None if no server of this name runs.

        Raises:
            ToolError: It cannot be read.
        """
        return None
