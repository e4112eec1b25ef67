"""Which action of the app each name in ``[keys]`` stands for, and when it does nothing.

Those that are shown (`Binding.show`) are offered by the command palette with their descriptions.
"""

from collections.abc import Iterable

from textual.binding import Binding

from agent_tui.key_actions import KEY_ACTIONS, KeyMap


def _binding(name: str, action: str, *, show: bool = True, priority: bool = False) -> Binding:
    """The binding of the action called `name` in the settings; its id is that name."""
    known = KEY_ACTIONS[name]
    keys, description = ",".join(known.keys), known.description
    return Binding(keys, action, description, show=show, priority=priority, id=name)


APP_BINDINGS: tuple[Binding, ...] = (
    _binding("interrupt", "interrupt", show=False),
    _binding("clear_or_leave", "clear_or_leave", show=False, priority=True),
    _binding("leave_if_empty", "leave_if_empty", show=False, priority=True),
    _binding("quit", "quit", show=False),
    _binding("palette", "open_palette", show=False),
    _binding("suspend", "suspend_process", priority=True),
    _binding("permission_mode", "next_permission_mode", priority=True),
    _binding("toggle_details", "toggle_details"),
    _binding("toggle_thinking", "toggle_thinking"),
    _binding("external_editor", "edit_outside"),
    _binding("find", "find", priority=True),
    _binding("take_back_queue", "take_back_queue"),
    _binding("mouse", "switch_mouse", priority=True),
    _binding("page_up", "scroll_chat(-1)", show=False, priority=True),
    _binding("page_down", "scroll_chat(1)", show=False, priority=True),
    _binding("first_message", "chat_home", priority=True),
    _binding("last_message", "chat_end", priority=True),
)

AREA_BINDINGS: tuple[Binding, ...] = (
    _binding("undo", "undo", show=False),
    _binding("word_left", "cursor_word_left", show=False),
    _binding("word_right", "cursor_word_right", show=False),
)
"""Of the prompt's text field, besides those every text field has."""


def bind_keys(bindings: Iterable[Binding], keys: KeyMap) -> list[Binding]:
    """`bindings` with the keys that `keys` gives their actions, one for each key."""
    return [
        binding.with_key(key)
        for binding in bindings
        for key in (keys.keys(binding.id) if binding.id else binding.key.split(","))
    ]


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
