"""Small pickers: of a `Listing`, of themes that are tried on, of earlier drafts."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from textual import getters

from agent_tui.commands.core.questions import Listing
from agent_tui.drafts.draft import Draft
from agent_tui.ui.parts import PaintedLines, any_app
from agent_tui.ui.screens.picker import PickerRow, PickerScreen
from agent_tui.ui.screens.session_preview import preview_lines
from agent_tui.ui.theme.themes import theme_kind
from agent_tui.ui.transcript.blocks import UserBlock

ValueT = TypeVar("ValueT")
_MOST_ROWS = 1_000
"""A longer draft is cut in the preview."""


class HistoryPicker(PickerScreen[Draft]):
    """Returns a draft to write on.

    Args:
        drafts: Oldest first.
    """

    heading = "Earlier prompts"
    nothing = "No prompts in this project yet."
    has_preview = True

    def __init__(self, drafts: Sequence[Draft]) -> None:
        super().__init__()
        self._drafts = tuple(drafts)

    async def load_rows(self) -> Sequence[PickerRow[Draft]]:
        """Newest first."""
        return [_row(draft) for draft in reversed(self._drafts)]

    def row_highlighted(self, row: PickerRow[Draft]) -> None:
        """Show the whole draft as the chat shows it."""
        blocks = (UserBlock(row.value.text),)
        paint = partial(preview_lines, blocks, self.wanted, most_rows=_MOST_ROWS)
        self._end.show(paint)

    def nothing_highlighted(self) -> None:
        """Nothing is left to show."""
        self._end.show()

    @property
    def _end(self) -> PaintedLines:
        return self.query_one("#picker-preview-end", PaintedLines)


def _row(draft: Draft) -> PickerRow[Draft]:
    first_line, _, rest = draft.text.strip().partition("\n")
    return PickerRow(draft, first_line, search=rest)


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


class ListingScreen(PickerScreen[ValueT], Generic[ValueT]):
    """Returns the value of the chosen row.

    Args:
        listing: What there is.
        note: Said below the rows.
        present: The value that is highlighted at first.
    """

    def __init__(
        self, listing: Listing[ValueT], *, note: str = "", present: ValueT | None = None
    ) -> None:
        super().__init__()
        self.heading = listing.title
        self.nothing = listing.empty
        self._listing = listing
        self.standing_note = note
        self._present = present

    async def load_rows(self) -> Sequence[PickerRow[ValueT]]:
        """What there is, with its details at the right."""
        return [
            PickerRow(choice.value, choice.label, (choice.details,))
            for choice in self._listing.choices
        ]

    def first_row(self, rows: Sequence[PickerRow[ValueT]]) -> int:
        """The present value."""
        return next((n for n, row in enumerate(rows) if row.value == self._present), 0)
