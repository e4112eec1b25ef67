"""Slash commands made of the prompts of MCP servers: ``/server:prompt``, sent as a message."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_tui.agent.prompt.mentions import find_mentions
from agent_tui.commands.core.command import Command
from agent_tui.commands.core.front import Front, has_model
from agent_tui.errors import ToolError

if TYPE_CHECKING:  # the first paint does not wait for the servers' room
    from agent_tui.tools.mcp.hub import McpHub
    from agent_tui.tools.mcp.library import RemotePrompt


def server_commands(servers: "McpHub") -> Iterator[Command]:
    """A command for each prompt that the servers offer now."""
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
    """Sends what a server makes of a prompt and its arguments; while a turn runs it is queued."""

    prompt: "RemotePrompt"
    servers: "McpHub"

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
                # What a server writes must not have files of the person's go along unasked.
                front.say(
                    f"/{self.prompt.name} not sent: it would attach @{mention.written}. Name that "
                    "file yourself to attach it.",
                    "warning",
                )
                return
        if await has_model(front):
            await front.send(text)
