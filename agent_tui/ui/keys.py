"""Which key does what while the chat is in front, and when it does nothing.

Those that are shown (`Binding.show`) are offered by the command palette with their descriptions.
"""

from textual.binding import Binding, BindingType

APP_BINDINGS: tuple[BindingType, ...] = (
    Binding("escape", "interrupt", "Stop what runs", show=False),
    Binding(
        "ctrl+c", "clear_or_leave", "Clear the prompt, twice: leave", show=False, priority=True
    ),
    Binding("ctrl+d", "leave_if_empty", "Leave, on an empty prompt", show=False, priority=True),
    Binding("ctrl+q", "quit", "Leave", show=False),
    Binding("ctrl+p", "open_palette", "Find a command or an action", show=False),
    Binding("ctrl+z", "suspend_process", "Suspend: fg in the shell comes back", priority=True),
    Binding("shift+tab", "next_permission_mode", "Next permission mode", priority=True),
    Binding("ctrl+o", "toggle_details", "Unfold or fold tool output and summaries"),
    Binding("ctrl+t", "toggle_thinking", "Show or hide thinking"),
    Binding("ctrl+g", "edit_outside", "Write the prompt in $EDITOR"),
    Binding("ctrl+f", "find", "Search the chat", priority=True),
    Binding("alt+up", "take_back_queue", "Take queued messages back into the prompt"),
    Binding("alt+m", "switch_mouse", "Turn the mouse off or on", priority=True),
    Binding("pageup", "scroll_chat(-1)", "Page up", show=False, priority=True),
    Binding("pagedown", "scroll_chat(1)", "Page down", show=False, priority=True),
    Binding("ctrl+home", "chat_home", "Go to the first message", priority=True),
    Binding("ctrl+end,ctrl+l", "chat_end", "Go to the newest message", priority=True),
)

NOT_OVER_SCREENS = frozenset(
    {"leave_if_empty", "next_permission_mode", "scroll_chat", "chat_home", "chat_end", "find"}
)
"""Actions that do nothing while a screen lies above the chat."""

NEED_THE_CHAT = NOT_OVER_SCREENS | {
    "interrupt",
    "toggle_details",
    "toggle_thinking",
    "take_back_queue",
    "edit_outside",
    "open_palette",
    "switch_mouse",
}
"""Actions that do nothing before the chat is there."""
