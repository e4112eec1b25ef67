"""Hubs of MCP servers over the small real one in `mcp_server`."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.features.mcp.hub import McpHub
from agent_tui.features.mcp.server import ServerContext
from agent_tui.features.mcp.sources import FoundServer, FoundServers
from agent_tui.tools.base import ToolContext
from agent_tui.tools.files.memory import FileMemory
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.server_spec import ServerSpec
from agent_tui.tools.shorten import OutputLimits
from tests.support import mcp_server

PROGRAM = (sys.executable, "-I", "-S", mcp_server.__file__)
KEY = "sk-ours-0123456789"


@dataclass(slots=True)
class FixedSources:
    """Servers that are set by the test."""

    servers: list[FoundServer] = field(default_factory=list[FoundServer])
    problems: tuple[str, ...] = ()
    answers: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])

    def find(self, cwd: Path) -> FoundServers:
        return FoundServers(tuple(self.servers), self.problems)

    def answer(self, spec: ServerSpec, *, is_allowed: bool) -> None:
        self.answers.append((spec.name, is_allowed))


class Stage:
    """One hub, what it told (of waiting apart), and what its servers noted."""

    def __init__(self, folder: Path, keeper: ProcessKeeper, *, wait_s: float = 30) -> None:
        self.folder = folder
        self.log_path = folder / "log" / "agent-tui.log"
        self.sources = FixedSources()
        self.told: list[str] = []
        self.waited: list[str] = []
        around = ServerContext(
            keeper=keeper,
            environ={"PATH": os.environ["PATH"]},
            whole_environ={"TOKEN_OF_MINE": "s3cret-token-1", "OUR_KEY": KEY},
            refused=frozenset({"OUR_KEY"}),
            secrets=(KEY,),
            log_path=self.log_path,
            cwd=folder,
            tokens=folder / "tokens",
        )
        self.hub = McpHub(self.sources, around, wait_s=wait_s)
        self.hub.listen(self.told.append)

    def add(self, name: str = "srv", fault: str = "", **changed: object) -> ServerSpec:
        """Name a server; `fault` is one of `mcp_server`."""
        given = {"argv": (*PROGRAM, fault, str(self.notes_file(name))), "timeout_s": 30.0}
        spec = ServerSpec(name=name, source="config.toml", **{**given, **changed})  # pyright: ignore[reportArgumentType]
        self.sources.servers.append(FoundServer(spec))
        return spec

    def notes_file(self, name: str = "srv") -> Path:
        return self.folder / f"{name}.notes"

    def notes(self, name: str = "srv") -> list[str]:
        """What a server noted of what happened to it, without process numbers."""
        file = self.notes_file(name)
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.partition(" ")[0] if "started" in line else line for line in lines]

    async def take_up(self, cwd: Path | None = None) -> bool:
        """Begin a turn in `cwd`; servers of another folder than theirs are started again."""
        return await self.hub.take_up(cwd or self.folder, self.waited.append)

    async def ready(self, fault: str = "") -> None:
        """Have one server with `fault` run, or fail."""
        self.add(fault=fault)
        await self.take_up()

    def offered(self) -> Iterator[str]:
        return (tool.name for tool in self.hub.offered)

    def context(self, **changed: object) -> ToolContext:
        """What calls are given."""
        context = ToolContext(
            cwd=self.folder,
            emit=lambda text, _skipped=0: self.told.append(text),
            files=FileMemory(),
            output_dir=self.folder / "outputs",
            environ={},
            todos=[],
            limits=OutputLimits(),
            secrets=(KEY,),
        )
        for name, value in changed.items():
            setattr(context, name, value)
        return context
