"""``-p``: one prompt without a screen, and many as JSON lines."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "print",
    subcommands=(
        Subcommand(
            "events",
            "print the JSON Schema of stream-json",
            "agent_tui.features.print.events_subcommand",
        ),
    ),
    options_module="agent_tui.features.print.options",
    headless="agent_tui.features.print.command:run_print",
)
