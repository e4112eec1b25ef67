"""Run a prompt repeatedly, and summarise a loop or another scope at its end."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "loops",
    part="agent_tui.features.loops.part:LoopsPart",
    tools=("agent_tui.features.loops.tool:make_tool",),
    brings={"agent_tui.commands": ("agent_tui.features.loops.command:loop",)},
)
