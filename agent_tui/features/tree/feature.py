"""Going back in a session, with its files, and forking: ``/undo``, ``/tree`` and ``/fork``."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "tree",
    brings={
        "agent_tui.commands": (
            "agent_tui.features.tree.command:tree",
            "agent_tui.features.tree.undo:undo",
            "agent_tui.features.tree.undo:fork",
        )
    },
)
