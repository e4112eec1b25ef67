"""What the next message costs once the provider's cache is cold: one dim line, never a question."""

from collections.abc import Callable

from textual.widgets import Static

from agent_tui.agent.compaction.cache_clock import ColdPrice

_LOOKS_EVERY_S = 10.0


class ColdLine(Static):
    """Hidden unless the next message is dear; looks again every few seconds.

    Args:
        price: What it costs now; None where that is not worth a word.
    """

    def __init__(self, price: Callable[[], ColdPrice | None]) -> None:
        super().__init__(id="cold", markup=False)
        self._price = price
        self.display = False

    def on_mount(self) -> None:
        """Begin to look."""
        self.set_interval(_LOOKS_EVERY_S, self.look)

    def look(self) -> None:
        """Bring the line up to date."""
        price = self._price()
        self.display = price is not None
        if price is not None:
            self.update(price.sentence)
