"""The search through what was sent before in this project."""

from collections.abc import Sequence
from functools import partial

from agent_tui.drafts.draft import Draft
from agent_tui.ui.parts import PaintedLines
from agent_tui.ui.screens.picker import PickerRow, PickerScreen
from agent_tui.ui.screens.session_preview import preview_lines
from agent_tui.ui.transcript.blocks import UserBlock

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
