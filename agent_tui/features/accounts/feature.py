"""Accounts to sign in to with a code, and a key that a page gives."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "accounts",
    accounts=(
        "agent_tui.features.accounts.copilot:COPILOT",
        "agent_tui.features.accounts.chatgpt:CHATGPT",
    ),
    key_pages=("agent_tui.features.accounts.openrouter:OPENROUTER",),
)
