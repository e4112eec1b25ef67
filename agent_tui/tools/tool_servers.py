"""The servers whose tools the model may call, as the program starts and shows them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from agent_tui.tools.base import Toolbox
from agent_tui.tools.form import FormFiller
from agent_tui.tools.remote_tools import RemoteTools
from agent_tui.tools.server_spec import ServerSpec


class ToolServers(RemoteTools):
    """All servers of a program. A feature overrides every method; here there are none."""

    @property
    def not_asked(self) -> tuple[ServerSpec, ...]:
        """Servers that start only if the user agrees, who was not asked yet."""
        return ()

    def combine(self, own: Toolbox) -> Toolbox:
        """The tools of `own`, then what the servers offer in the current turn."""
        return own

    def listen(self, listener: Callable[[str], None]) -> None:
        """Give `listener` every line for the user, past ones included, on the event loop."""

    def let_answer(self, fill: FormFiller) -> None:
        """Let servers started from now on ask the user through `fill`, one at a time."""

    def start(self, cwd: Path) -> None:
        """Start the servers for `cwd` in the background; needs a running event loop."""

    async def reconcile(self, cwd: Path) -> None:
        """Start and stop servers to match the configuration files for `cwd`."""

    async def resource_choices(self, typed: str) -> Mapping[str, str]:
        """Completions of `typed` for ``@server:uri``, each with the server's description."""
        return {}

    async def answer(self, spec: ServerSpec, *, is_allowed: bool) -> None:
        """Start or permanently refuse a server, as the user decided.

        Raises:
            ConfigError: The decision cannot be stored; it applies to this run.
        """

    async def aclose(self) -> None:
        """Stop all servers."""
