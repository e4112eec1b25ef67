"""Which key does what while the chat is in front, and when it does nothing."""

from textual.binding import Binding, BindingType

APP_BINDINGS: tuple[BindingType, ...] = (
    Binding("escape", "interrupt", "Stop"),
    Binding("ctrl+c", "clear_or_leave", "Clear, twice: leave", priority=True),
    Binding("ctrl+d", "leave_if_empty", "Leave", priority=True),
    Binding("ctrl+q", "quit", "Leave", show=False),
    Binding("ctrl+z", "suspend_process", "Suspend", priority=True),
    Binding("shift+tab", "next_permission_mode", "Permission mode", priority=True),
    Binding("ctrl+o", "toggle_details", "Details"),
    Binding("ctrl+t", "toggle_thinking", "Thinking"),
    Binding("ctrl+g", "edit_outside", "Editor"),
    Binding("alt+up", "take_back_queue", "Take back"),
    Binding("pageup", "scroll_chat(-1)", "Page up", priority=True),
    Binding("pagedown", "scroll_chat(1)", "Page down", priority=True),
    Binding("ctrl+home", "chat_home", "First message", priority=True),
    Binding("ctrl+end,ctrl+l", "chat_end", "Newest message", priority=True),
)

NOT_OVER_SCREENS = frozenset(
    {"leave_if_empty", "next_permission_mode", "scroll_chat", "chat_home", "chat_end"}
)
"""Actions that do nothing while a screen lies above the chat."""

NEED_THE_CHAT = NOT_OVER_SCREENS | {
    "interrupt",
    "toggle_details",
    "toggle_thinking",
    "take_back_queue",
    "edit_outside",
}
"""Actions that do nothing before the chat is there."""
