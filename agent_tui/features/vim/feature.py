"""The keys of vi in the prompt."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "vim",
    settings="agent_tui.features.vim.settings:VimSettings",
    prompt_modes=("agent_tui.features.vim.modes:VI",),
    brings={"agent_tui.commands": ("agent_tui.features.vim.command:vim",)},
)
