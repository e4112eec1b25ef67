"""Files of instructions: ``/memory`` shows and changes them, ``/init`` has the model write one."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "memory",
    brings={
        "agent_tui.commands": (
            "agent_tui.features.memory.command:memory",
            "agent_tui.features.memory.command:init",
        )
    },
)
