"""MCP servers, whose tools the model can call: the servers, a command and a subcommand."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "mcp",
    subcommands=(
        Subcommand(
            "mcp", "list, add, remove or log in to MCP servers", "agent_tui.features.mcp.subcommand"
        ),
    ),
    settings="agent_tui.features.mcp.settings:McpSection",
    command_finders=("agent_tui.features.mcp.prompt_commands:make_finder",),
    tool_servers="agent_tui.features.mcp.services:make_servers",
    brings={"agent_tui.commands": ("agent_tui.features.mcp.command:mcp",)},
    stores={
        "mcp-servers.json": "which MCP servers you allowed; you are asked again",
        "mcp-tokens": "sign-ins to MCP servers; you sign in again",
    },
)
