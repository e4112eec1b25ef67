"""The page of ``/mcp``: the servers, how they are, what they offer, and how to have one."""

from collections.abc import Sequence
from pathlib import Path

from agent_tui.tools.mcp.hub import ServerView
from agent_tui.ui.pages import Page, Section
from agent_tui.ui.status.status_bar import short_path

_HOW = (
    ("/mcp restart NAME", "start one again"),
    ("/mcp off NAME, on NAME", "until the program ends; enabled = false in config.toml stays"),
    ("what it may do", 'Each call asks, unless a rule allows it: allow = ["mcp__NAME__*"].'),
    ("when it counts", "Tools that come or go do so when your next message is sent."),
)
_HOW_TO_HAVE_ONE = (
    (
        "yours",
        'In config.toml: [mcp.servers.NAME] with command = "..." and args = ["..."], '
        'or with url = "https://...".',
    ),
    ("a project's", '.mcp.json in its folder: {"mcpServers": {"NAME": {"command": "..."}}}'),
)


def mcp_page(servers: Sequence[ServerView], home: Path) -> Page:
    """The servers in their order, then the commands."""
    if not servers:
        return Page("MCP servers", (Section("There are none", _HOW_TO_HAVE_ONE),))
    sections = [Section(_heading(server), tuple(_rows(server, home))) for server in servers]
    return Page("MCP servers", (*sections, Section("How", _HOW)))


def _heading(server: ServerView) -> str:
    if server.state != "ready":
        return f"{server.spec.name}: {server.state}"
    count = len(server.tools)
    return f"{server.spec.name}: ready, {count} tool{'' if count == 1 else 's'}"


def _rows(server: ServerView, home: Path) -> list[tuple[str, str]]:
    spec = server.spec
    rows = [("why", server.why)] if server.why else []
    if server.state == "not asked":
        rows.append(("why", f"/mcp ask {spec.name} asks whether it may be started"))
    rows.append(("address" if spec.url else "command", spec.command_line))
    rows.append(("named in", short_path(Path(spec.source), home)))
    if server.tools:
        rows.append(("tools", ", ".join(server.tools)))
    return rows + [("note", note) for note in server.notes]
