"""The modes of vi as the prompt knows them."""

from collections.abc import Callable
from typing import Final

from textual.widgets import TextArea

from agent_tui.commands.core.front import PageSection
from agent_tui.config import Settings
from agent_tui.features.vim.settings import VimSettings
from agent_tui.ui.prompt.modes import KeyModes, PromptModes, Walk


def _are_wanted(settings: Settings) -> bool:
    return settings.of(VimSettings).vim_mode


def _make(area: TextArea, told: Callable[[Walk], None]) -> KeyModes:
    from agent_tui.features.vim.keys import VimKeys  # most people do without

    return VimKeys(area, told)


VI: Final = PromptModes(
    PageSection(
        "Vi keys, with vim_mode = true",
        (
            ("esc", "normal mode; in normal mode, what it does without vi keys"),
            ("i I a A o O", "insert mode"),
            ("h j k l w b e W B E 0 ^ $ gg G", "move; j and k at the edges walk the history"),
            ("f F t T ; ,", "to a character in the line, and repeat"),
            ("d c y", 'delete, change, copy, over a motion, a line (dd) or iw a( i" ip ...'),
            ("x r ~ J D C Y p P", "delete, replace, toggle case, join, paste; with counts: 3x"),
            ("u ctrl+r .", "undo, redo, repeat"),
            ("v V", "select; o goes to the other end"),
        ),
    ),
    _are_wanted,
    _make,
)
