"""The screen to pick a session from: search, preview, rename, delete, other agents' sessions."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "session_picker",
    pickers={
        "agent_tui.commands.sessions:PickableSessions": (
            "agent_tui.features.session_picker.screen:make_picker"
        )
    },
)
