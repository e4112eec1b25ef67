"""Tools that search files and list folders. Without them, the model uses commands for it."""

from agent_tui.feature import Feature, FeatureCheck

FEATURE = Feature(
    "file_search",
    tools=(
        "agent_tui.features.file_search.grep:make_grep",
        "agent_tui.features.file_search.find:make_find",
        "agent_tui.features.file_search.ls:make_ls",
    ),
    checks=(FeatureCheck("tools", "rg", "agent_tui.features.file_search.check:check_ripgrep"),),
)
