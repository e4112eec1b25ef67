"""Sessions of other agents."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "importers",
    brings={
        "agent_tui.importers": (
            "agent_tui.features.importers.claude_code:CLAUDE_CODE",
            "agent_tui.features.importers.codex:CODEX",
            "agent_tui.features.importers.gemini:GEMINI",
            "agent_tui.features.importers.opencode:OPENCODE",
            "agent_tui.features.importers.kimi:KIMI",
        )
    },
)
