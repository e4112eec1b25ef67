"""What the files bring now: approved ones are loaded, each once for each of its texts."""

import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.commands.core.command import Command
from agent_tui.features.tool_files.folder import (
    Approvals,
    FileText,
    UnusableFile,
    find_files,
)
from agent_tui.features.tool_files.loading import Loaded, Taken, load_file
from agent_tui.tools.base import Toolbox
from agent_tui.tools.registry import ToolRegistry

FileState: TypeAlias = Literal["loaded", "not asked", "declined"]


@dataclass(frozen=True, slots=True)
class ToolFile:
    """One file.

    Args:
        file: Its text.
        state: What the user decided about it.
        loaded: What it brings, if it was approved.
    """

    file: FileText
    state: FileState
    loaded: Loaded = field(default_factory=Loaded)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with it, one line each, if it was approved."""
        return tuple(f"{self.file.path}: {why}." for why in self.loaded.problems)

    @property
    def lines(self) -> Iterator[str]:
        """What the user is told about it, one line each; names no folder."""
        name = self.file.path.name
        match self.state:
            case "loaded":
                if self.loaded.parts:
                    yield f"{name}: {self.loaded.parts}"
                yield from self.problems
            case "not asked":
                yield f"{name} is not loaded: you have not approved it. /reload in a terminal asks."
            case "declined":
                yield f"{name} is not loaded: you declined it. /reload ask asks again."


class ToolFiles:
    """The files of one folder. Can be used from several threads.

    Args:
        folder: Where they are.
        approvals: The user's answers.
        find_taken: Returns the names that no file can use.
    """

    def __init__(self, folder: Path, approvals: Approvals, find_taken: Callable[[], Taken]) -> None:
        self.folder = folder
        self.approvals = approvals
        self._find_taken = find_taken
        self._taken: Taken | None = None
        self._lock = threading.Lock()
        self._files: tuple[ToolFile, ...] | None = None
        self._unusable: tuple[UnusableFile, ...] = ()
        self._toolbox: Toolbox | None = None

    @property
    def files(self) -> tuple[ToolFile, ...]:
        """The files at the last look."""
        return self._files or ()

    @property
    def toolbox(self) -> Toolbox | None:
        """Their tools, which are asked about before each call; None if there are none."""
        return self._toolbox

    @property
    def commands(self) -> tuple[Command, ...]:
        """Their commands."""
        return tuple(command for one in self.files for command in one.loaded.commands)

    @property
    def lines(self) -> tuple[str, ...]:
        """What the user is told about all of them."""
        return (*(line for one in self.files for line in one.lines), *self.unusable)

    @property
    def unusable(self) -> tuple[str, ...]:
        """What the user is told about those that cannot be loaded at all."""
        return tuple(f"{one.path} {one.why}." for one in self._unusable)

    def look_once(self, writable: Collection[Path]) -> None:
        """`look`, if that was not done yet."""
        if self._files is None:
            self.look(writable)

    def look(self, writable: Collection[Path]) -> bool:
        """Take up new, changed and removed files; true if that changed what they bring. Blocking.

        Args:
            writable: Folders where the model's commands may write.
        """
        with self._lock:
            before = {one.file: one.loaded for one in self.files if one.state == "loaded"}
            found = list(find_files(self.folder, writable))
            self._unusable = tuple(one for one in found if isinstance(one, UnusableFile))
            files: list[ToolFile] = []
            for file in (one for one in found if isinstance(one, FileText)):
                files.append(self._take_up(file, before, files, writable))
            tools = [tool.offer("outside") for one in files for tool in one.loaded.tools]
            self._toolbox = ToolRegistry(*tools) if tools else None
            self._files = tuple(files)
            return before != {one.file: one.loaded for one in files if one.state == "loaded"}

    def _take_up(
        self,
        file: FileText,
        before: dict[FileText, Loaded],
        others: list[ToolFile],
        writable: Collection[Path],
    ) -> ToolFile:
        is_allowed = self.approvals.is_allowed(file)
        if not is_allowed:
            return ToolFile(file, "not asked" if is_allowed is None else "declined")
        loaded = before.get(file) or load_file(file, self._taken_by(others), writable)
        return ToolFile(file, "loaded", loaded)

    def _taken_by(self, others: list[ToolFile]) -> Taken:
        if self._taken is None:
            self._taken = self._find_taken()
        tools = {tool.name.lower() for one in others for tool in one.loaded.tools}
        commands = {
            name.lower()
            for one in others
            for command in one.loaded.commands
            for name in (command.name, *command.aliases)
        }
        return Taken({*self._taken.tools, *tools}, {*self._taken.commands, *commands})
