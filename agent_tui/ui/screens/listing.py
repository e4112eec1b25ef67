"""A `Listing` as a screen: what has no picker of its own."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from agent_tui.commands.core.front import Listing
from agent_tui.ui.screens.picker import PickerRow, PickerScreen

ValueT = TypeVar("ValueT")


class ListingScreen(PickerScreen[ValueT], Generic[ValueT]):
    """Returns the value of the chosen row."""

    def __init__(self, listing: Listing[ValueT]) -> None:
        super().__init__()
        self.heading = listing.title
        self.nothing = listing.empty
        self._listing = listing

    async def load_rows(self) -> Sequence[PickerRow[ValueT]]:
        """What there is, with its details at the right."""
        return [
            PickerRow(choice.value, choice.label, (choice.details,))
            for choice in self._listing.choices
        ]
