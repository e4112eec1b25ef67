"""Prompt files of the user's and of trusted projects, and skills, as slash commands."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "custom_commands",
    command_finders=("agent_tui.features.custom_commands.finder:PromptFileFinder",),
)
