"""Rules that the user's repeated corrections suggest."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "rules",
    subcommands=(
        Subcommand(
            "rules",
            "list rules that your repeated corrections suggest",
            "agent_tui.features.rules.subcommand",
        ),
    ),
    settings="agent_tui.features.rules.settings:RuleSettings",
    events=("agent_tui.features.rules.events:RuleOffered",),
    between_turns=("agent_tui.features.rules.command:find_offers",),
    brings={"agent_tui.commands": ("agent_tui.features.rules.command:rules",)},
)
