"""The sandbox of the model's commands, as the program uses it, and what holds without one."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from agent_tui.errors import ToolError
from agent_tui.tools.base import Scratch, ToolContext, ToolOutput
from agent_tui.tools.held_files import HeldFiles
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.processes.shell import ShellCommand


def setup_error(why: str, obstacle: Path | None = None) -> ToolError:
    """The error for a command whose sandbox cannot be set up.

    Args:
        why: What failed.
        obstacle: The file or folder of the user's that it failed on, if known.
    """
    then = "To run commands without it, set sandbox to off."
    if obstacle is not None:
        then = f"Move {obstacle} out of the folder, then run the command again."
    return ToolError(f"The sandbox cannot be set up: {why.rstrip('.')}. Nothing was run. {then}")


class CommandStart(NamedTuple):
    """How a command is started.

    Attributes:
        keeper: Starts it.
        environ: Its environment.
        secrets: What no stored output of it may contain.
    """

    keeper: ProcessKeeper
    environ: Mapping[str, str]
    secrets: tuple[str, ...]


@dataclass(slots=True)
class CommandRun:
    """One command from before its start to its result; here it runs without a sandbox.

    Call `begin`, `start`, then `finish`, or `give_up` if it has no result.

    Args:
        how: How it is started without a sandbox.
    """

    how: CommandStart

    async def begin(self) -> None:
        """Note how things are before the command.

        Raises:
            ToolError: It may not run.
        """

    async def start(self) -> CommandStart:
        """Return how it is started.

        Raises:
            ToolError: Its sandbox cannot be set up. It never runs without it instead.
        """
        return self.how

    async def hints(self, output: str, *, is_error: bool) -> Sequence[str]:
        """Return what the model should know about the sandbox, a line each.

        Args:
            output: What the command printed.
            is_error: Whether it failed.
        """
        return ()

    async def give_up(self) -> None:
        """The command was stopped, or could not be started."""

    async def finish(self, output: ToolOutput, command: ShellCommand) -> ToolOutput:
        """Return `output` with what the command left for the user to decide on.

        Args:
            output: The result so far.
            command: The command, which may continue as a job.

        Raises:
            ToolError: What it left cannot be examined.
        """
        return output


class CommandSandbox:
    """Where the model's commands run. A feature overrides every method; here there is no sandbox.

    So it is with ``sandbox = "off"``: rules and the permission mode alone protect the machine.
    """

    def is_on(self, cwd: Path) -> bool:
        """Whether commands in `cwd` run in a sandbox. Blocking on first use."""
        return False

    def word(self, cwd: Path) -> str:
        """How commands in `cwd` run, in a word or two. Blocking on first use."""
        return "sandbox off"

    def refusal(self, cwd: Path) -> str:
        """Why no command of the model may run in `cwd`; empty if one may. Blocking."""
        return ""

    def is_coarse(self, cwd: Path) -> bool:
        """Whether the sandbox can neither hide nor protect files in working folders."""
        return False

    def scratch(self, cwd: Path) -> Scratch | None:
        """What replaces ``/tmp`` for commands in `cwd`; None if it is the machine's. Blocking."""
        return None

    def run(self, command: str, context: ToolContext, how: CommandStart) -> CommandRun:
        """Return the run of a command in the sandbox, where `is_on` says that there is one.

        Args:
            command: The command.
            context: That of its call.
            how: How it would be started without a sandbox.

        Raises:
            ToolError: There is none.
        """
        raise setup_error("there is none")

    async def accept(self, cwd: Path, written: Mapping[Path, bytes | None]) -> None:
        """Record what our tools wrote, None for a deleted file; other changes are commands'."""

    async def close_walls(
        self, settle: Callable[[HeldFiles], Awaitable[None]] | None = None
    ) -> None:
        """End what runs in the sandbox; `settle` decides on what commands left."""


NO_SANDBOX: Final = CommandSandbox()
