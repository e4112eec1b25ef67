"""Which action each name in ``[keys]`` stands for, when it does nothing, and the guide to all keys.

Bindings that are shown (`Binding.show`) are offered by the command palette.
"""

from collections.abc import Iterable

from textual.binding import Binding

from agent_tui.commands.core.front import PageSection
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
    _binding("background", "move_to_background", priority=True),
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
    {
        "leave_if_empty",
        "next_permission_mode",
        "move_to_background",
        "scroll_chat",
        "chat_home",
        "chat_end",
        "find",
    }
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


_GUIDE = (
    PageSection(
        "Writing",
        (
            ("{submit}", "send; while a turn runs: queue"),
            ("{newline}, \\ enter", "new line"),
            ("/ @ !", "commands, files, run a shell command (!! keeps it from the model)"),
            ("tab", "complete; in a menu: insert the selected item; if empty: the suggestion"),
            (
                "{history_older}, {history_newer}",
                "earlier prompts, from the first or last line; in a menu: up, down move",
            ),
            ("{history_search}", "search earlier prompts"),
            ("{external_editor}", "write in $EDITOR"),
            ("{take_back_queue}", "edit queued messages"),
            ("{word_left}, {word_right}", "a word left or right"),
            ("ctrl+w, ctrl+u, ctrl+k", "delete a word, to the start, to the end of the line"),
            ("{undo}", "undo"),
        ),
    ),
    PageSection(
        "Running",
        (
            ("{background}", "move the running command to the background (/background)"),
            ("{palette}", "find any command or action; in a menu: ctrl+p up, ctrl+n down"),
            ("{paste_image}", "attach the image on the clipboard"),
            ("{help}", "all commands and keys, on an empty prompt"),
            ("{interrupt}", "close the menu, else stop what runs and keep the partial reply"),
            (
                "{interrupt} twice",
                "go back to an earlier message, while nothing runs (/tree)",
            ),
            (
                "{permission_mode}",
                "next permission mode: ask, accept-edits, plan; /mode full for full",
            ),
            (
                "up down enter",
                "choose an answer to any question, once you stop typing for a second; "
                "letters and digits answer too; j, k scroll",
            ),
            (
                "y a p s w r c g n e",
                "yes: once, this session or all edits, this project, with rules, with what comes "
                "next; g edits a plan; no; no, with instructions",
            ),
        ),
    ),
    PageSection(
        "Reading",
        (
            ("{page_up}, {page_down}", "scroll the chat"),
            ("{first_message}", "first message"),
            ("{last_message}", "back to the newest line"),
            ("{find}", "search the chat"),
            (
                "{toggle_details}",
                "expand or collapse tool output and summaries; on a paste mark: open it",
            ),
            ("{toggle_thinking}", "show or hide thinking"),
            (
                "drag, then {clear_or_leave}",
                "select and copy; /scrollback prints everything to the terminal",
            ),
            ("{mouse}", "leave the mouse to the terminal, or take it back (/mouse)"),
        ),
    ),
)
_LEAVING = PageSection(
    "Leaving",
    (
        ("{clear_or_leave}", "clear the prompt; else stop what runs; twice quits"),
        ("{leave_if_empty}", "leave, on an empty prompt"),
        ("{quit}", "leave at once"),
        ("{suspend}", "suspend; fg in the shell resumes"),
    ),
)


def key_guide(keys: KeyMap) -> tuple[PageSection, ...]:
    """What each key does, with the keys that are in force."""
    from agent_tui.ui.prompt.modes import brought_modes  # after the first paint

    brought = (modes.guide for modes in brought_modes())
    shown = {name: keys.all_shown(name) for name in KEY_ACTIONS}
    return tuple(
        PageSection(
            section.heading, tuple((keys.format(**shown), text) for keys, text in section.rows)
        )
        for section in (*_GUIDE, *brought, _LEAVING)
    )
