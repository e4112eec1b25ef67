"""The search through what was sent before in this project."""

from collections.abc import Sequence

from textual.content import Content

from agent_tui.drafts.draft import Draft
from agent_tui.safe_text import safe_text
from agent_tui.ui.screens.picker import PickerRow, PickerScreen


class HistoryPicker(PickerScreen[Draft]):
    """Returns a draft to write on.

    Args:
        drafts: Oldest first.
    """

    heading = "What you sent before"
    nothing = "Nothing was sent in this project yet."
    has_preview = True

    def __init__(self, drafts: Sequence[Draft]) -> None:
        super().__init__()
        self._drafts = tuple(drafts)

    async def load_rows(self) -> Sequence[PickerRow[Draft]]:
        """Newest first."""
        return [_row(draft) for draft in reversed(self._drafts)]

    def preview_of(self, row: PickerRow[Draft]) -> Content:
        """The whole draft, as it stood in the prompt."""
        return Content(safe_text(row.value.text))


def _row(draft: Draft) -> PickerRow[Draft]:
    first_line, _, rest = draft.text.strip().partition("\n")
    return PickerRow(draft, first_line, search=rest)
