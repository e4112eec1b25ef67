"""The chooser of a first model: found models, keys to paste, the user's server, accounts."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "first_run",
    pickers={"agent_tui.ui.options:FirstRun": "agent_tui.features.first_run.screen:make_chooser"},
)
