"""The command about MCP servers, whose tools the model may call."""

from collections.abc import Iterator
from pathlib import Path

from agent_tui.errors import AgentTuiError
from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import Choice, command


def _choices(host: CommandHost) -> Iterator[Choice]:
    for server in host.servers.servers if host.servers is not None else ():
        name = server.spec.name
        match server.state:
            case "ready" | "failed" | "starting":
                yield Choice(f"restart {name}", f"start it again; it is {server.state}")
                yield Choice(f"off {name}", "end it, until the program ends")
            case "off":
                yield Choice(f"on {name}", "start it")
                if server.spec.is_projects:
                    yield Choice(f"ask {name}", "say whether it may be started")
            case "not asked":
                yield Choice(f"ask {name}", "say whether it may be started")


@command("[restart NAME | on NAME | off NAME | ask NAME]", choices=_choices)
async def mcp(host: CommandHost, argument: str) -> None:
    """Show, restart or switch MCP servers."""
    if host.servers is None:
        host.say("There are no MCP servers in this run.")
        return
    verb, _, name = argument.partition(" ")
    try:
        match verb:
            case "":
                await _show(host)
            case "restart":
                await host.servers.restart(name.strip())
                host.say(f"MCP server {name.strip()} is started again; /mcp shows how it is.")
            case "on" | "off":
                await host.servers.switch(name.strip(), is_on=verb == "on")
                host.say(f"MCP server {name.strip()} is {verb} until the program ends.")
            case "ask":
                await _ask(host, name.strip())
            case _:
                host.say(f"/mcp takes restart, on, off or ask, not {verb}.", "warning")
    except AgentTuiError as error:
        host.say(str(error), "warning")


async def _show(host: CommandHost) -> None:
    from agent_tui.ui.mcp_page import mcp_page
    from agent_tui.ui.screens.page import PageScreen

    assert host.servers is not None
    await host.servers.look(host.runtime.conversation.cwd)
    await host.ask(PageScreen(mcp_page(host.servers.servers, Path.home())))


async def _ask(host: CommandHost, name: str) -> None:
    from agent_tui.ui.screens.mcp_server import McpServerScreen

    assert host.servers is not None
    spec = host.servers.project_server(name)
    answer = await host.ask(McpServerScreen(spec, host.write_letter))
    if answer is not None:
        await host.servers.answer(spec, is_allowed=answer)
        host.say(f"MCP server {name}: {'it is started' if answer else 'it is not started'}.")
