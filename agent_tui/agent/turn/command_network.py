"""The connections that commands want; without a sandbox, nobody decides on them."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from agent_tui.agent.activity import Emit
from agent_tui.tools.base import ToolOutput

NETWORK: Final = "network"
"""The tool name used in questions and in the list of refused calls."""


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

    async def run_command(self, run: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
        """Run a command of the model; its output includes the connections refused meanwhile.

        Raises:
            CallInterrupted: It was interrupted; what it had printed includes them, too.
        """
        return await run()

    async def look_at_job(self, id: str, run: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
        """Run a call that looks at the job `id`; its output includes the job's refusals."""
        return await run()
