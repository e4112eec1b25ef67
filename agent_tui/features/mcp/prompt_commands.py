"""Slash commands from prompts of MCP servers: ``/server:prompt``, sent as a message."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from agent_tui.agent.prompt.mentions import find_mentions
from agent_tui.commands.core.command import Command
from agent_tui.commands.core.found_commands import CommandFinder, FinderHost, FoundCommands
from agent_tui.commands.core.front import Front, has_model
from agent_tui.errors import ToolError
from agent_tui.features.mcp.hub import McpHub
from agent_tui.features.mcp.library import ServerPrompt


def make_finder(host: FinderHost) -> CommandFinder:
    """What finds the commands of the prompts that servers offer now."""
    servers = host.services.servers

    async def find() -> FoundCommands:
        return FoundCommands(tuple(_commands(servers)) if isinstance(servers, McpHub) else ())

    return find


def _commands(servers: McpHub) -> Iterator[Command]:
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

    prompt: ServerPrompt
    servers: McpHub

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
