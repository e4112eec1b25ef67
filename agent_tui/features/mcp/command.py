"""The MCP servers, whose tools the model may call."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front, Page, PageSection
from agent_tui.commands.core.short_words import count_text, short_path
from agent_tui.commands.trust import server_question
from agent_tui.errors import AgentTuiError
from agent_tui.features.mcp.hub import McpHub, ServerView

_HOW = (
    ("/mcp restart NAME", "restart a server"),
    ("/mcp off NAME, on NAME", "for this run only; enabled = false in config.toml lasts"),
    ("permissions", 'Each call asks unless a rule allows it: allow = ["mcp__NAME__*"].'),
    ("when it applies", "Tools are added and removed when you send your next message."),
)
_HOW_TO_HAVE_ONE = (
    (
        "yours",
        'In config.toml: [mcp.servers.NAME] with command = "..." and args = ["..."], '
        'or with url = "https://...".',
    ),
    ("a project's", '.mcp.json in its folder: {"mcpServers": {"NAME": {"command": "..."}}}'),
)


def _completions(front: Front) -> Iterator[Completion]:
    servers = front.services.servers
    for server in servers.servers if isinstance(servers, McpHub) else ():
        name = server.spec.name
        match server.state:
            case "ready" | "failed" | "starting":
                yield Completion(f"restart {name}", f"restart it (now {server.state})")
                yield Completion(f"off {name}", "stop it for this run")
            case "off":
                yield Completion(f"on {name}", "start it")
                if server.spec.is_asked_about:
                    yield Completion(f"ask {name}", "decide whether it may start")
            case "not asked":
                yield Completion(f"ask {name}", "decide whether it may start")


@command("[restart NAME | on NAME | off NAME | ask NAME]", completions=_completions)
async def mcp(front: Front, argument: str) -> None:
    """Show, restart or switch off MCP servers."""
    servers = front.services.servers
    if not isinstance(servers, McpHub):
        front.say("No MCP servers in this run.")
        return
    verb, _, name = argument.partition(" ")
    try:
        match verb:
            case "":
                await _show(front, servers)
            case "restart":
                await servers.restart(name.strip())
                front.say(f"MCP server {name.strip()} restarted; /mcp shows its state.")
            case "on" | "off":
                await servers.switch(name.strip(), is_on=verb == "on")
                front.say(f"MCP server {name.strip()} is {verb} for this run.")
            case "ask":
                await _ask(front, servers, name.strip())
            case _:
                front.say(f"/mcp takes restart, on, off or ask, not {verb}.", "warning")
    except AgentTuiError as error:
        front.say(str(error), "warning")


async def _show(front: Front, servers: McpHub) -> None:
    await servers.reconcile(front.runtime.conversation.cwd)
    await front.show(mcp_page(servers.servers, Path.home()))


async def _ask(front: Front, servers: McpHub, name: str) -> None:
    spec = servers.project_server(name)
    answer = await front.ask(server_question(spec))
    if answer is not None:
        await servers.answer(spec, is_allowed=answer)
        front.say(f"MCP server {name}: {'starting' if answer else 'not started'}.")


def mcp_page(servers: Sequence[ServerView], home: Path) -> Page:
    """The servers in their order, then the commands."""
    if not servers:
        return Page("MCP servers", (PageSection("No MCP servers", _HOW_TO_HAVE_ONE),))
    sections = [PageSection(_heading(server), tuple(_rows(server, home))) for server in servers]
    return Page("MCP servers", (*sections, PageSection("How", _HOW)))


def _heading(server: ServerView) -> str:
    if server.state != "ready":
        return f"{server.spec.name}: {server.state}"
    return f"{server.spec.name}: ready, {count_text(len(server.tools), 'tool')}"


def _rows(server: ServerView, home: Path) -> list[tuple[str, str]]:
    spec = server.spec
    rows = [("why", server.why)] if server.why else []
    if server.state == "not asked":
        rows.append(("why", f"/mcp ask {spec.name} asks whether it may start"))
    rows.append(("URL" if spec.url else "command", spec.command_line))
    rows.append(("defined in", short_path(Path(spec.source), home)))
    if server.tools:
        rows.append(("tools", ", ".join(server.tools)))
    return rows + [("note", note) for note in server.notes]
