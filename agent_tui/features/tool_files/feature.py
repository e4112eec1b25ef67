"""Tools and commands in one file each: ``tools/NAME.py`` in the user's configuration folder."""

from agent_tui.feature import Feature, FeatureCheck

_HERE = "agent_tui.features.tool_files"

FEATURE = Feature(
    "tool_files",
    between_turns=(f"{_HERE}.command:look_at_files",),
    command_finders=(f"{_HERE}.command:make_finder",),
    checks=(FeatureCheck("tool files", "tool files", f"{_HERE}.check:check_tool_files"),),
    part=f"{_HERE}.part:ToolFilesPart",
    brings={"agent_tui.commands": (f"{_HERE}.command:reload",)},
    stores={"tool-files": "which tool files you allowed; you are asked again"},
)
