"""The files in one conversation: their tools, and the questions whether they may be loaded."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from agent_tui.agent.activity import Emit
from agent_tui.agent.part import Answer, Host, Part, ProgramQuestion
from agent_tui.agent.services import RuntimeServices
from agent_tui.commands.core.command import Command
from agent_tui.commands.core.plugin_kinds import COMMANDS, TOOLS
from agent_tui.errors import ConfigError
from agent_tui.features.tool_files.folder import FileText, own_approvals
from agent_tui.features.tool_files.library import ToolFiles
from agent_tui.features.tool_files.loading import Taken
from agent_tui.tools.base import Toolbox
from agent_tui.tools.files.diffs import unified_diff

FOLDER = "tools"
"""The name of the folder, in the user's configuration folder."""

_WHAT_IT_DOES = "It runs in agent-tui itself, outside the sandbox, with everything that you can do."


class ToolFilesPart(Part):
    """Offers the tools of approved files; a demo has none.

    Attributes:
        files: The files; the same ones in each session of the program.
    """

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        services = host.services
        self.files = ToolFiles(
            services.user_config_dir / FOLDER, own_approvals(), lambda: _find_taken(services)
        )
        self._is_off = services.origin == "tour"
        self._asked: set[str] = set()
        self._told: set[str] = set()

    def follow(self, earlier: Part) -> None:
        """Continue with the same files, questions and notices."""
        assert isinstance(earlier, ToolFilesPart)
        self.files, self._asked, self._told = earlier.files, earlier._asked, earlier._told

    def toolbox(self) -> Toolbox | None:
        """The tools of approved files."""
        if self._is_off:
            return None
        self.files.look_once(self._writable)
        return self.files.toolbox

    @property
    def _writable(self) -> tuple[Path, ...]:
        services = self.host.services
        started = () if services.launch_cwd is None else (services.launch_cwd,)
        return (self.host.conversation.cwd, *started, *services.added_folders)

    async def look(self) -> None:
        """Take up new, changed and removed files."""
        if not self._is_off and await asyncio.to_thread(self.files.look, self._writable):
            self.host.conversation.fitted = None  # other tools are offered

    async def before_message(self, text: str, emit: Emit) -> Answer:
        """What the user was not told yet about the files."""
        if not self._is_off:
            await asyncio.to_thread(self.files.look_once, self._writable)
        return Answer(notices=self.take_news())

    def take_news(self) -> tuple[str, ...]:
        """What the user was not told yet; of a file that works or was declined, nothing.

        A mistake in a file that was approved is told once, also over several runs.
        """
        lines = [line for one in self.files.files if one.state == "not asked" for line in one.lines]
        news = [line for line in (*lines, *self.files.unusable) if line not in self._told]
        for one in self.files.files:
            is_known = self._told.issuperset(one.problems)
            if not is_known and self.files.approvals.tell_once(one.file, one.problems):
                news += one.problems
            self._told.update(one.problems)
        self._told.update(news)
        return tuple(news)

    def forget_asked(self) -> None:
        """Ask again about files that were left unanswered."""
        self._asked.clear()

    async def questions(self, *, asks_again: bool = False) -> Sequence[ProgramQuestion]:
        """The questions about files without an answer, each once in a run.

        Args:
            asks_again: Also about those that were left unanswered or declined.
        """
        await self.look()
        asked = [
            one.file
            for one in self.files.files
            if one.state == "not asked" or (asks_again and one.state == "declined")
        ]
        asked = [file for file in asked if asks_again or file.fingerprint not in self._asked]
        self._asked.update(file.fingerprint for file in asked)
        return [self._question(file) for file in asked]

    def _question(self, file: FileText) -> ProgramQuestion:
        before = self.files.approvals.approved_before(file.path)
        return ProgramQuestion(
            f"Load {'the changed ' * (before is not None)}{file.path.name}?",
            tuple(_facts(file, before)),
            partial(self._answer, file),
            until="the file changes",
            at_terminal=True,
        )

    async def _answer(self, file: FileText, *, is_allowed: bool) -> None:
        """Load the file, or leave it out from now on.

        Raises:
            ConfigError: The file is gone, or the answer cannot be stored; it holds for this run.
        """
        if is_allowed and not await asyncio.to_thread(file.path.exists):
            raise ConfigError(f"{file.path} is gone, so there is nothing to load.")
        try:
            await asyncio.to_thread(self.files.approvals.keep, file, is_allowed=is_allowed)
        finally:
            await self.look()


def _facts(file: FileText, before: FileText | None) -> Iterator[str]:
    yield str(file.path)
    yield _WHAT_IT_DOES
    if before is not None:
        yield "What changed since you approved it:"
        old, new = ("\n".join(_lines(text)) for text in (before.text, file.text))
        yield from unified_diff(old, new, file.path.name).text.split("\n")[2:]
    yield "All of it:"
    yield from (f"{number:4} {line}" for number, line in enumerate(_lines(file.text), 1))


def _lines(text: str) -> list[str]:
    """The lines of `text` as Python reads them; the other signs that may end one stay in it."""
    lines = re.split(r"\r\n|\r|\n", text)
    return lines if lines[-1] else lines[:-1]


def _find_taken(services: RuntimeServices) -> Taken:
    """The names of the program's tools and commands, and of those that plugins bring."""
    tools = {
        *TOOLS.reserved(),
        *(getattr(one, "name", "") for one in services.brought(TOOLS.group)),
    }
    commands = {*COMMANDS.reserved()}
    for one in services.brought(COMMANDS.group):
        if isinstance(one, Command):
            commands |= {one.name, *one.aliases}
    return Taken({name.lower() for name in tools}, {name.lower() for name in commands})
