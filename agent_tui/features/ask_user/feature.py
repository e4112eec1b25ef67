"""Questions of the model to the user, with answers to choose from."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "ask_user",
    part="agent_tui.features.ask_user.part:AskUserPart",
    tools=("agent_tui.features.ask_user.tool:make_tool",),
)
