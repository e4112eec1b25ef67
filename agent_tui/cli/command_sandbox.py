"""Makes the sandbox of the model's commands, if a feature brings one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from agent_tui import paths
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.turn.command_network import CommandNetwork
from agent_tui.agent.turn.pending_approvals import PendingApprovals
from agent_tui.config import Settings
from agent_tui.errors import AgentTuiError
from agent_tui.feature import load_object, own_features
from agent_tui.permissions.protected_paths import SandboxView
from agent_tui.safe_paths import real_path
from agent_tui.tools.base import ToolContext
from agent_tui.tools.command_sandbox import CommandRun, CommandSandbox, CommandStart, setup_error
from agent_tui.tools.processes.keeper import ProcessKeeper


class ProgramSandbox(CommandSandbox):
    """The sandbox of a program. A feature overrides every method; here there is none."""

    def problem(self, cwd: Path) -> str:
        """Why there is no sandbox in `cwd` though one is wanted; else empty. Blocking."""
        return ""

    def notice(self, cwd: Path) -> str:
        """A notice for the user at the start in `cwd`; empty if all is as usual. Blocking."""
        return ""

    def shows(self, cwd: Path, path: Path) -> bool:
        """Whether commands in `cwd` can read `path` (absolute, links followed). Blocking."""
        return True

    def temporary_folders(self, cwd: Path) -> Sequence[Path] | None:
        """The folders for temporary files that commands in `cwd` write; None without a sandbox.

        By the names that tools use. Blocking on first use.
        """
        return None

    def expect(self, *folders: Path) -> None:
        """Note that commands may write `folders`: we run no program that lies there."""

    async def recover(self, cwd: Path) -> None:
        """Set aside what commands left in `cwd` that ran when a program was killed.

        Raises:
            ToolError: It cannot be done; the next command tries again.
        """

    def network(
        self, pending: PendingApprovals, conversation: Callable[[], Conversation]
    ) -> CommandNetwork:
        """Make what decides on the connections that commands want, for a runtime.

        Args:
            pending: Takes the user's answers.
            conversation: Returns the present conversation.
        """
        return CommandNetwork()


class BrokenSandbox(ProgramSandbox):
    """A sandbox whose own files are damaged: no command of the model runs.

    Args:
        why: What is wrong, as a phrase.
    """

    def __init__(self, why: str) -> None:
        self._error = setup_error(f"agent-tui's files are damaged ({why})")

    def is_on(self, cwd: Path) -> bool:
        """True: nothing is judged as if there were no sandbox."""
        return True

    def temporary_folders(self, cwd: Path) -> Sequence[Path] | None:
        """None that commands write."""
        return ()

    def problem(self, cwd: Path) -> str:
        """What is wrong."""
        return str(self._error)

    def word(self, cwd: Path) -> str:
        """The words of a machine without a sandbox, which stand out."""
        return "no sandbox"

    def notice(self, cwd: Path) -> str:
        """What is wrong."""
        return str(self._error)

    def refusal(self, cwd: Path) -> str:
        """What is wrong."""
        return str(self._error).removesuffix(".")

    def run(self, command: str, context: ToolContext, how: CommandStart) -> CommandRun:
        """Run nothing."""
        raise self._error


@dataclass(frozen=True, slots=True)
class SandboxHost:
    """What the program gives the sandbox.

    Attributes:
        settings: Whether it is wanted, and where the sessions are.
        environ: Where programs are searched for.
        added: Other working folders.
        keeper: Starts git and the sandbox itself, outside; None for a separate one.
    """

    settings: Settings
    environ: Mapping[str, str]
    added: tuple[Path, ...] = ()
    keeper: ProcessKeeper | None = None


def command_sandbox(
    settings: Settings,
    environ: Mapping[str, str],
    added: Iterable[Path] = (),
    *,
    keeper: ProcessKeeper | None = None,
) -> ProgramSandbox:
    """The sandbox of the model's commands; it has tried nothing yet. See `SandboxHost`.

    If a feature brings one that cannot be imported, commands are refused, not run without it.

    Raises:
        UsageError: The folder of sessions is not possible.
    """
    names = filter(None, (feature.sandbox for feature in own_features()))
    if (name := next(names, None)) is None:
        return ProgramSandbox()
    host = SandboxHost(settings, environ, tuple(added), keeper)
    try:
        return cast("Callable[[SandboxHost], ProgramSandbox]", load_object(name))(host)
    except AgentTuiError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever its files raise, no command runs
        return BrokenSandbox(f"{type(error).__name__}: {error}")


def view_of_commands(sandbox: ProgramSandbox, workspace: Path) -> SandboxView:
    """What commands in `workspace` can read and write; saved outputs count as read.

    From now on, agent-tui runs no program that lies there.
    """
    sandbox.expect(workspace)
    outputs = real_path(paths.cache_folder("outputs"))
    return SandboxView(
        lambda path: not (path.is_relative_to(outputs) or sandbox.shows(workspace, path)),
        lambda: sandbox.temporary_folders(workspace),
    )
