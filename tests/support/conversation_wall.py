"""A conversation's commands as the program runs them: the sandbox of the command line, and bash."""

import asyncio
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.config import Settings
from agent_tui.errors import ToolError
from agent_tui.features.sandbox.plan import Backend
from agent_tui.features.sandbox.sandbox import Sandbox
from agent_tui.messages import JsonObject
from agent_tui.tools.base import ToolContext, ToolOutput
from agent_tui.tools.files.memory import FileMemory
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.registry import default_toolbox
from tests.support.patience import PATIENCE_S
from tests.support.sandbox import program_sandbox

_FALL = {
    "bubblewrap": "kill -9 $(grep -ls gate_process /proc/[0-9]*/cmdline | cut -d/ -f3)",
    "landlock": "kill -9 $PPID $(cut -d' ' -f4 /proc/$PPID/stat)",
}
"""Ends what no sandbox goes on without: its way to the network, or what starts commands."""
KEY = "decoy-of-a-key"


@dataclass
class Conversation:
    """One conversation in ``project``; `home` has a decoy of a key.

    Args:
        base: Everything is made in it.
        backend: Which wall is to stand.
    """

    base: Path
    backend: Backend
    added: tuple[Path, ...] = ()
    path: str = ""
    settings: Settings = field(default_factory=lambda: Settings.model_validate({"sandbox": "on"}))
    sandbox: Sandbox = field(init=False)

    def __post_init__(self) -> None:
        self.work, self.home = self.base / "project", self.base / "home"
        for folder in (self.work, self.home / ".ssh", self.base / "bin"):
            folder.mkdir(parents=True, exist_ok=True)
        (self.home / ".ssh/id_rsa").write_text(KEY)
        if self.backend == "landlock":
            for name in ("git", "true", "bash", "sh"):
                if not (self.base / "bin" / name).exists():
                    (self.base / "bin" / name).symlink_to(shutil.which(name) or "")
        self.keeper = ProcessKeeper()
        self.begin()

    def begin(self) -> None:
        """Another conversation in the same folder."""
        path = os.defpath if self.backend == "bubblewrap" else f"{self.base}/bin"
        if self.path:
            path = f"{self.path}:{path}"
        self.environ = {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8"}
        self.sandbox = program_sandbox(self.settings, self.environ, self.added, keeper=self.keeper)

    def context(self, may_show: Callable[[Path], bool] = lambda _path: False) -> ToolContext:
        """What the tools are given."""
        environ = {**self.environ, "PATH": f"{self.environ['PATH']}:{os.defpath}"}
        return ToolContext(
            cwd=self.work,
            emit=lambda _text, _skipped=0: None,
            files=FileMemory(),
            output_dir=self.base / "outputs",
            environ=environ,
            todos=[],
            default_timeout_s=PATIENCE_S,
            may_show=may_show,
        )

    async def bash(self, command: str, **more: object) -> ToolOutput:
        """Run a command as the model does."""
        arguments: JsonObject = {"command": command, **more}  # pyright: ignore[reportAssignmentType]
        toolbox = default_toolbox(self.keeper, sandbox=self.sandbox)
        return await toolbox.prepare("bash", arguments, self.context()).run()

    async def says(self, command: str, **more: object) -> str:
        """What a command of the model prints."""
        return (await self.bash(command, **more)).for_model

    async def refuses_all(self, command: str) -> None:
        """Run a command, and answer no to what it leaves for the user to decide."""
        output = await self.bash(command)
        for held in output.held:
            assert output.holder is not None
            with suppress(ToolError):
                await output.holder.decide(held, False)

    async def fall(self) -> None:
        """Have a command end the wall; the next command gets a new one."""
        for _ in range(2):
            with suppress(ToolError):
                await self.says(_FALL[self.backend])
                await asyncio.sleep(0.3)

    async def restart(self) -> None:
        """End the conversation, and begin another one."""
        await self.sandbox.close_walls()
        self.begin()
