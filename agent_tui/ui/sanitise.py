"""What the screen may draw: text from outside goes through one of these two."""

from agent_tui.safe_text import safe_output, safe_text

__all__ = ["safe_output", "safe_text"]
