"""Getting a project ready to be worked on: an AGENTS.md."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from agent_tui.agent.prompt.init_prompt import init_prompt, init_target
from agent_tui.agent.prompt.memory import why_not_obeyed
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front, has_model
from agent_tui.commands.core.short_words import shown_file
from agent_tui.events import AgentEvent, Notice


@command(
    "[focus]",
    refusal="Cannot write AGENTS.md while the agent works. Use /abort first, or wait.",
)
async def init(front: Front, argument: str) -> None:
    """Write or improve AGENTS.md."""
    runtime = front.runtime
    if runtime.conversation.permissions.mode == "plan":
        front.say("Plan mode cannot write files. Use /permissions ask first.", "warning")
        return
    if await has_model(front):
        prompt = await asyncio.to_thread(init_prompt, runtime.conversation.cwd, argument)
        await front.run(_written(runtime, prompt))


async def _written(runtime: AgentRuntime, prompt: str) -> AsyncGenerator[AgentEvent, None]:
    """The turn, and then what it wrote put in force; the model has not to be told of it twice."""
    before = runtime.conversation.context_files
    async with aclosing(runtime.submit(prompt)) as events:
        async for event in events:
            yield event
    file = init_target(runtime.conversation.cwd)
    if not file.exists():
        return
    for event in await runtime.sessions.apply_trust():
        yield event
    shown = shown_file(file, runtime.conversation.cwd)
    if all(one.path != file for one in runtime.conversation.context_files):
        why = why_not_obeyed(file, runtime.services.trust)
        yield Notice("info", f"{shown} is not in effect: {why}. /trust changes that.")
    elif runtime.conversation.context_files != before:
        yield Notice("info", f"{shown} takes effect with your next message.")
