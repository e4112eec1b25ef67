"""Calling tools the way the agent does: by name, through the registry."""

from dataclasses import replace

from agent_tui.messages import JsonObject
from agent_tui.tools.base import Intent, ToolContext, ToolOutput
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.registry import default_toolbox

KEEPER = ProcessKeeper()
"""One for all tests: each costs a start of Python once it is used."""


async def call_tool(context: ToolContext, name: str, arguments: JsonObject) -> ToolOutput:
    """The output of a call, with the files that a command changed."""
    return await with_changes(await default_toolbox(KEEPER).prepare(name, arguments, context).run())


async def with_changes(output: ToolOutput) -> ToolOutput:
    """`output` with the files that the command is found to have changed."""
    if output.find_changes is None:
        return output
    details = output.for_person.model_copy(update={"files": await output.find_changes()})
    return replace(output, for_person=details)


def intent_of(context: ToolContext, name: str, arguments: JsonObject) -> Intent:
    return default_toolbox(KEEPER).prepare(name, arguments, context).intent
