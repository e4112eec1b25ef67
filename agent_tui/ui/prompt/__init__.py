"""The prompt: where the person writes, with its history, its menus and its large pastes."""

from agent_tui.ui.prompt.history import PromptHistory
from agent_tui.ui.prompt.pastes import Draft
from agent_tui.ui.prompt.prompt import Prompt

__all__ = ["Draft", "Prompt", "PromptHistory"]
