"""Rows of styled text that are painted anew for each width and theme."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rich.segment import Segment
from textual import getters
from textual.app import App
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from agent_tui.ui.styled_lines import Line
from agent_tui.ui.theme.palette import Palette, palette_of

Paint: TypeAlias = Callable[[int, Palette], Sequence[Line]]
"""Rows of so many cells, in these colours."""


def _any_app() -> type[App[object]]:
    return App


def _nothing(_width: int, _palette: Palette) -> Sequence[Line]:
    return ()


class PaintedLines(Widget):
    """As high as its rows; those in sight are drawn."""

    app = getters.app(_any_app)

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._paint: Paint = _nothing
        self._lines: Sequence[Line] = ()
        self._drawn_for: tuple[int, Palette] | None = None

    def on_mount(self) -> None:
        """Follow the theme."""
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self.refresh())

    def show(self, paint: Paint = _nothing) -> None:
        """Show other rows; none without `paint`."""
        self._paint, self._drawn_for = paint, None
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """All rows: what holds this scrolls."""
        return len(self._lines_at(width))

    def render_line(self, y: int) -> Strip:
        """One row."""
        lines = self._lines_at(self.size.width)
        segments: Sequence[Segment] = lines[y].segments if y < len(lines) else ()
        return Strip(segments).adjust_cell_length(self.size.width).apply_style(self.rich_style)

    def _lines_at(self, width: int) -> Sequence[Line]:
        palette = palette_of(self.app)
        if self._drawn_for != (width, palette):
            self._drawn_for = (width, palette)
            self._lines = self._paint(width, palette)
        return self._lines
