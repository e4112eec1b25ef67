"""Slash commands made of prompt files: ``review.md`` is ``/review``, sent as a message."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.agent.prompt_shelf import FoundPrompts, LeftOut, PromptFile, PromptShelf
from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import Command
from agent_tui.ui.file_names import shown_file

_MOST_TOLD = 3
"""Of many unusable files the others are named by ``/help``."""
_SPEAKS_OF_PATHS = re.compile(r"path|file|folder|dir", re.IGNORECASE)
"""In an argument's hint: then paths complete it, which would be in the way of other words."""


class CustomCommands:
    """Keeps the registry in step with the prompt files.

    Args:
        host: The front end; its registry is filled.
        shelf: Where the files are.
    """

    def __init__(self, host: CommandHost, shelf: PromptShelf) -> None:
        self._host = host
        self._shelf = shelf
        self._found = FoundPrompts()
        self._told: set[LeftOut] = set()

    async def refresh(self) -> bool:
        """Look for new, changed and removed files, in a thread; false where nothing changed.

        What cannot be used is told once.
        """
        found = await asyncio.to_thread(self._shelf.look, self._host.runtime.conversation.cwd)
        if found == self._found:
            return False
        self._found = found
        self._host.registry.take_up(
            map(self._command, found.files),
            [(self._shown(one), one.why) for one in found.left_out],
        )
        self._tell([one for one in found.left_out if one not in self._told])
        return True

    def _tell(self, news: Sequence[LeftOut]) -> None:
        self._told.update(news)
        for one in news[:_MOST_TOLD]:
            self._host.say(f"{self._shown(one)} {one.why}.", "warning")
        if (more := len(news) - _MOST_TOLD) > 0:
            said = f"{more:,} more prompt files cannot be used: /help says which and why."
            self._host.say(said, "warning")

    def _shown(self, one: LeftOut) -> str:
        return shown_file(one.path, self._host.runtime.conversation.cwd)

    def _command(self, file: PromptFile) -> Command:
        return Command(
            name=file.name,
            description=f"{file.source} · {file.description}",
            argument_hint=file.argument_hint,
            aliases=(),
            refusal="",
            choices=None,
            harmless=(),
            takes_path=_SPEAKS_OF_PATHS.search(file.argument_hint) is not None,
            run=_Sending(file, self._shelf),
            source=file.source,
        )


@dataclass(frozen=True, slots=True)
class _Sending:
    """Sends what a prompt file makes of an argument; while a turn runs it is queued."""

    file: PromptFile
    shelf: PromptShelf

    async def __call__(self, host: CommandHost, argument: str) -> None:
        name, cwd = self.file.name, host.runtime.conversation.cwd
        text = await asyncio.to_thread(self.shelf.message, name, argument, cwd)
        if text is None:
            where = f"{self.file.path} is gone, or no longer in force here"
            host.say(f"There is no /{name} any more: {where}.", "warning")
        elif not host.runtime.conversation.model.name and not await host.set_up_model():
            host.say("No model is chosen. Use /model.", "warning")
        elif host.runtime.conversation.model.name:
            host.queue(text)
