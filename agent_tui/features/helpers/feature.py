"""Helpers that work for a conversation, and sessions in git worktrees."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "helpers",
    subcommands=(
        Subcommand(
            "worktrees",
            "list and remove the git worktrees of --worktree",
            "agent_tui.features.helpers.command",
        ),
    ),
    tools=(
        "agent_tui.features.helpers.explore_tool:make_explore",
        "agent_tui.features.helpers.delegate_tool:make_delegate",
    ),
    settings="agent_tui.features.helpers.settings:HelperSettings",
    part="agent_tui.features.helpers.part:HelpersPart",
    options_module="agent_tui.features.helpers.options",
    around="agent_tui.features.helpers.options:run_in_place",
    completions={"worktree": "agent_tui.features.helpers.completion:worktree_names"},
    stores_elsewhere={"git/worktrees": "agent_tui.features.helpers.stored:list_worktrees"},
)
