"""The connections that commands want; without a sandbox, nobody decides on them."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from agent_tui.agent.activity import Emit
from agent_tui.tools.base import Intent, ToolOutput

NETWORK: Final = "network"
"""The tool name used in questions and in the list of refused calls."""


@dataclass(frozen=True, slots=True)
class NamedHosts:
    """The hosts that a command names and about which the user would be asked.

    Attributes:
        rules: What allows them, as text.
        shown: Their names, for the user.
        is_usual: Whether they are all known hosts, such as those of package registries.
    """

    rules: tuple[str, ...] = ()
    shown: str = ""
    is_usual: bool = True


NO_HOSTS: Final = NamedHosts()


class CommandNetwork:
    """Decides on connections that commands inside the sandbox want.

    A feature overrides every method. Here there is no sandbox, so nothing asks: commands reach what
    the machine reaches.
    """

    @property
    def waited_s(self) -> float:
        """Seconds spent waiting for the user in all, including a question that is still open."""
        return 0.0

    def connections(self, most: int) -> Sequence[tuple[str, str]]:
        """The connections that commands wanted, newest first: when and how decided; the host."""
        return ()

    def listen(self, listener: Emit) -> None:
        """Give `listener` the notices that come while no activity runs."""

    def activity(self, emit: Emit) -> AbstractAsyncContextManager[None]:
        """Send questions to `emit` inside the block; refuse those still open at the end."""
        return nullcontext()

    def hosts_to_ask(self, intent: Intent) -> NamedHosts:
        """The hosts that a command names and about which the user would be asked."""
        return NO_HOSTS

    async def run_command(
        self, run: Callable[[], Awaitable[ToolOutput]], allowed: NamedHosts = NO_HOSTS
    ) -> ToolOutput:
        """Run a command of the model; its output includes the connections refused meanwhile.

        Args:
            run: Runs it.
            allowed: What the user allowed with it, until it and the jobs that it starts have ended.

        Raises:
            CallInterrupted: It was interrupted; what it had printed includes them, too.
        """
        return await run()

    async def look_at_job(self, id: str, run: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
        """Run a call that looks at the job `id`; its output includes the job's refusals."""
        return await run()
