"""The bar at the bottom: folder, model, cost, and how full the context is."""

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget

from agent_tui.safe_text import safe_text

if TYPE_CHECKING:  # the bar is part of the first paint, its fields are not
    from agent_tui.ui.status.status_line import StatusFields

_CONTEXT_UNKNOWN = "[ctx: …]"
_MUTED = "$foreground-muted"


def starting_line(folder: str, width: int) -> Content:
    """The bar while the conversation is loaded, `width` cells wide."""
    where = safe_text(folder, keep_newlines=False)
    left = Content.assemble(
        (f"{where} · " if where else "", _MUTED),
        ("starting…", "$foreground-disabled"),
    ).truncate(max(width - len(_CONTEXT_UNKNOWN) - 1, 0), ellipsis=True)
    gap = " " * max(width - left.cell_length - len(_CONTEXT_UNKNOWN), 0)
    return Content.assemble(left, gap, (_CONTEXT_UNKNOWN, _MUTED))


class StatusBar(Widget):
    """Shows the `StatusFields` it is given; before that the `folder` and that it starts."""

    def __init__(self, folder: str = "") -> None:
        super().__init__(id="status-bar")
        self._folder = folder
        self._fields: StatusFields | None = None

    @property
    def fields(self) -> "StatusFields | None":
        """What is shown; None until something is known."""
        return self._fields

    def show(self, fields: "StatusFields") -> None:
        """Show other values."""
        if fields != self._fields:
            self._fields = fields
            self.refresh()

    def render(self) -> Content:
        """The line, fitted to the width."""
        width = self.content_size.width
        if self._fields is None:
            return starting_line(self._folder, width)
        from agent_tui.ui.status.status_line import status_line

        return status_line(self._fields, width)
