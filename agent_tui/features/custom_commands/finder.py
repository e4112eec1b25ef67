"""Slash commands from prompt files: ``review.md`` is ``/review``, sent as a message."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.commands.core.command import Command
from agent_tui.commands.core.found_commands import FinderHost, FoundCommands
from agent_tui.commands.core.front import Front, has_model
from agent_tui.commands.core.registry import UnusableFile
from agent_tui.commands.core.short_words import file_text
from agent_tui.features.custom_commands.library import LeftOut, PromptFile, PromptLibrary

_MOST_TOLD = 3
"""Unusable files named in notices; ``/help`` lists the others."""
_SPEAKS_OF_PATHS = re.compile(r"path|file|folder|dir", re.IGNORECASE)
"""If an argument's hint matches, paths complete it; otherwise they would be in the way."""


class PromptFileFinder:
    """Finds the commands; tells the user once about each file that cannot be used.

    Args:
        host: Gives the working folder and which files take effect.
    """

    def __init__(self, host: FinderHost) -> None:
        self._host = host
        services = host.runtime.services
        self._library = PromptLibrary(services.user_config_dir, services.trust, host.taken)
        self._told: set[LeftOut] = set()

    async def __call__(self) -> FoundCommands:
        """Look for new, changed and removed files in a thread."""
        found = await asyncio.to_thread(self._library.find, self._host.runtime.conversation.cwd)
        self._tell_of([one for one in found.left_out if one not in self._told])
        return FoundCommands(
            tuple(map(self._command, found.files)),
            tuple(map(self._unusable, found.left_out)),
            self._find_withheld,
        )

    def _find_withheld(self, name: str) -> UnusableFile | None:
        withheld = self._library.find_withheld(name, self._host.runtime.conversation.cwd)
        return None if withheld is None else self._unusable(withheld)

    def _unusable(self, one: LeftOut) -> UnusableFile:
        return UnusableFile(self._path_text(one), one.why, one.name)

    def _tell_of(self, news: Sequence[LeftOut]) -> None:
        self._told.update(news)
        for one in news[:_MOST_TOLD]:
            self._host.tell(f"{self._path_text(one)} {one.why}.")
        if (more := len(news) - _MOST_TOLD) > 0:
            self._host.tell(f"{more:,} more prompt files cannot be used; /help lists them.")

    def _path_text(self, one: LeftOut) -> str:
        return file_text(one.path, self._host.runtime.conversation.cwd)

    def _command(self, file: PromptFile) -> Command:
        return Command(
            name=file.name,
            description=f"{file.source} {'skill ' * file.is_skill}· {file.description}",
            argument_hint=file.argument_hint,
            takes_path=_SPEAKS_OF_PATHS.search(file.argument_hint) is not None,
            run=_SendPromptFile(file, self._library),
            source=file.source,
        )


@dataclass(frozen=True, slots=True)
class _SendPromptFile:
    """Sends an expanded prompt file, or queues it during a turn."""

    file: PromptFile
    library: PromptLibrary

    async def __call__(self, front: Front, argument: str) -> None:
        name, cwd = self.file.name, front.runtime.conversation.cwd
        text = await asyncio.to_thread(self.library.message, name, argument, cwd)
        if text is None:
            where = f"{self.file.path} was deleted or is not in effect here"
            front.say(f"/{name} no longer exists: {where}.", "warning")
        elif await has_model(front):
            await front.send(text)
