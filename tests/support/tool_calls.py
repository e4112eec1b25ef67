"""Calling tools the way the agent does: by name, through the registry."""

from agent_tui.messages import JsonObject
from agent_tui.tools.base import Intent, ToolContext, ToolOutput
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.registry import default_toolbox

KEEPER = ProcessKeeper()
"""One for all tests: each costs a start of Python once it is used."""


async def call_tool(context: ToolContext, name: str, arguments: JsonObject) -> ToolOutput:
    return await default_toolbox(KEEPER).prepare(name, arguments, context).run()


def intent_of(context: ToolContext, name: str, arguments: JsonObject) -> Intent:
    return default_toolbox(KEEPER).prepare(name, arguments, context).intent
