"""Slash commands from prompt files: ``review.md`` is ``/review``, sent as a message.

Prompts of MCP servers are included.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_tui.agent.prompt.mentions import find_mentions
from agent_tui.agent.prompt.prompt_library import FoundPrompts, LeftOut, PromptFile, PromptLibrary
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.command import Command
from agent_tui.commands.core.front import Front, has_model
from agent_tui.commands.core.registry import CommandRegistry, UnusableFile
from agent_tui.commands.core.short_words import file_text
from agent_tui.errors import ToolError

if TYPE_CHECKING:  # pydantic loads after the first paint
    from agent_tui.tools.server_offer import ServerPrompt
    from agent_tui.tools.tool_servers import ToolServers


def server_commands(servers: "ToolServers") -> Iterator[Command]:
    """A command for each prompt that servers offer now."""
    for prompt in servers.prompts:
        yield Command(
            name=prompt.name,
            description=f"MCP server {prompt.server} · {prompt.description or prompt.own_name}",
            argument_hint=prompt.hint,
            run=_SendServerPrompt(prompt, servers),
            source="server",
        )


@dataclass(frozen=True, slots=True)
class _SendServerPrompt:
    """Sends a server's expanded prompt, or queues it during a turn."""

    prompt: "ServerPrompt"
    servers: "ToolServers"

    async def __call__(self, front: Front, argument: str) -> None:
        try:
            text = await self.servers.prompt(self.prompt, argument)
        except ToolError as error:
            front.say(str(error), "warning")
            return
        cwd = front.runtime.conversation.cwd
        by_person = await asyncio.to_thread(find_mentions, argument, cwd)
        for mention in await asyncio.to_thread(find_mentions, text, cwd):
            if mention not in by_person:
                # Text from a server must not attach the user's files without asking.
                front.say(
                    f"/{self.prompt.name} not sent: it would attach @{mention.written}. Name that "
                    "file yourself to attach it.",
                    "warning",
                )
                return
        if await has_model(front):
            await front.send(text)


_MOST_TOLD = 3
"""Unusable files named in notices; ``/help`` lists the others."""
_SPEAKS_OF_PATHS = re.compile(r"path|file|folder|dir", re.IGNORECASE)
"""If an argument's hint matches, paths complete it; otherwise they would be in the way."""


class PromptFileCommands:
    """Keeps a registry up to date with the prompt files.

    Args:
        registry: Gets their commands.
        runtime: Gives the working folder and which files take effect.
        servers: The servers, whose prompts are commands too.
        tell: Gets a line for each file that cannot be used, once.
    """

    def __init__(
        self,
        registry: CommandRegistry,
        runtime: AgentRuntime,
        servers: "ToolServers",
        tell: Callable[[str], object] = lambda _line: None,
    ) -> None:
        self._registry = registry
        self._runtime = runtime
        services = runtime.services
        self._library = PromptLibrary(services.user_config_dir, services.trust, registry.own_names)
        self._tell = tell
        self._servers = servers
        self._prompts: tuple[ServerPrompt, ...] = ()
        self._found = FoundPrompts()
        self._told: set[LeftOut] = set()

    async def refresh(self) -> bool:
        """Look for new, changed and removed files in a thread; false if nothing changed."""
        found = await asyncio.to_thread(self._library.find, self._runtime.conversation.cwd)
        prompts = self._servers.prompts
        if (found, prompts) == (self._found, self._prompts):
            return False
        self._found, self._prompts = found, prompts
        self._registry.use_prompt_files(
            (*map(self._command, found.files), *server_commands(self._servers)),
            [UnusableFile(self._path_text(one), one.why, one.name) for one in found.left_out],
        )
        self._tell_of([one for one in found.left_out if one not in self._told])
        return True

    def _tell_of(self, news: Sequence[LeftOut]) -> None:
        self._told.update(news)
        for one in news[:_MOST_TOLD]:
            self._tell(f"{self._path_text(one)} {one.why}.")
        if (more := len(news) - _MOST_TOLD) > 0:
            self._tell(f"{more:,} more prompt files cannot be used; /help lists them.")

    def _path_text(self, one: LeftOut) -> str:
        return file_text(one.path, self._runtime.conversation.cwd)

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
