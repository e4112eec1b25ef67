"""``/resume``, and its screen: search, preview, rename, delete, other agents' sessions."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "session_picker",
    pickers={
        "agent_tui.features.session_picker.command:PickableSessions": (
            "agent_tui.features.session_picker.screen:make_picker"
        )
    },
    brings={"agent_tui.commands": ("agent_tui.features.session_picker.command:resume",)},
)
