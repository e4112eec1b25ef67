"""A conversation line by line."""

from agent_tui.feature import Feature, Option

FEATURE = Feature(
    "plain",
    options=(
        Option(
            "plain", "chat line by line without the screen, for screen readers and dumb terminals"
        ),
    ),
    front="agent_tui.features.plain.command",
    settings="agent_tui.features.plain.settings:PlainSettings",
)
