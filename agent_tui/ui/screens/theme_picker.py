"""The theme picker: each theme is tried on while it is highlighted."""

from collections.abc import Callable, Sequence

from textual import getters

from agent_tui.ui.parts import any_app
from agent_tui.ui.screens.picker import PickerRow, PickerScreen
from agent_tui.ui.theme.themes import theme_kind


class ThemePicker(PickerScreen[str]):
    """Returns the chosen theme's name; closing it brings the first theme back.

    Args:
        names: All themes.
        present: The one in use.
        try_on: Uses a theme.
    """

    app = getters.app(any_app)
    heading = "Choose a theme"
    nothing = "No themes."

    def __init__(self, names: Sequence[str], present: str, try_on: Callable[[str], None]) -> None:
        super().__init__()
        self._names = tuple(names)
        self._before = present
        self._try_on = try_on

    async def load_rows(self) -> Sequence[PickerRow[str]]:
        """The themes, the one in use first."""
        ordered = sorted(self._names, key=lambda name: name != self._before)
        known = self.app.available_themes
        return [PickerRow(name, name, (theme_kind(known[name]),)) for name in ordered]

    def row_highlighted(self, row: PickerRow[str]) -> None:
        """Try the theme on."""
        self._try_on(row.value)

    def action_leave(self) -> None:
        """Close and undo the trying."""
        self._try_on(self._before)
        super().action_leave()
