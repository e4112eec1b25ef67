"""Small widgets that several screens share: a line of keys, a field, rows of styled text."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar, cast

from rich.segment import Segment
from textual import getters
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.geometry import Size
from textual.screen import Screen
from textual.signal import Signal
from textual.strip import Strip
from textual.visual import VisualType
from textual.widget import Widget
from textual.widgets import Static

from agent_tui.ui.styled_lines import Line
from agent_tui.ui.theme.palette import Palette, palette_of

KEY, WORDS = "$foreground", "$foreground-muted"
ResultT = TypeVar("ResultT")
Paint: TypeAlias = Callable[[int, Palette], Sequence[Line]]
"""Rows of so many cells, in these colours."""


class FieldRow(Horizontal):
    """A field behind the sign that the prompt has."""

    def __init__(self, field: Widget) -> None:
        super().__init__()
        self._field = field

    def compose(self) -> ComposeResult:
        """The sign and the field."""
        yield Static("›", markup=False)
        yield self._field


def any_app() -> type[App[object]]:
    """The type of the app, for `textual.getters.app`: the attribute of a widget has none."""
    return App


class _LaidOut(Protocol):
    """The one signal of a screen that matters here."""

    screen_layout_refresh_signal: Signal[object]


def follow_layout(widget: Widget, screen: Screen[ResultT], act: Callable[[], None]) -> None:
    """Call `act` for `widget` whenever `screen` has been laid out; that may lay it out again."""
    known = cast("_LaidOut", screen)  # Textual leaves the type of the signal open
    known.screen_layout_refresh_signal.subscribe(widget, lambda _screen: act())


def _nothing(_width: int, _palette: Palette) -> Sequence[Line]:
    return ()


class PaintedLines(Widget):
    """Rows of styled text. It is as high as they are, and draws only those in sight."""

    app = getters.app(any_app)

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._paint: Paint = _nothing
        self._lines: Sequence[Line] = ()
        self._drawn_for: tuple[int, Palette] | None = None

    def on_mount(self) -> None:
        """Follow theme changes."""
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self.refresh())

    def show(self, paint: Paint = _nothing) -> None:
        """Show other rows; none without `paint`."""
        self._paint, self._drawn_for = paint, None
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The number of rows: the container scrolls."""
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


def keys_line(text: str) -> Content:
    """``esc stops · enter answers`` with the first word of each part, the key, brighter."""
    parts: list[Content] = []
    for part in text.split(" · "):
        name, space, words = part.partition(" ")
        parts.append(Content.assemble((name, KEY), (space + words, WORDS)))
    return Content.styled(" · ", WORDS).join(parts)


class KeysLine(Static):
    """A line of keys as a widget.

    Args:
        text: The keys and what they do, ``esc stops · enter answers``.
        id: What the widget is found by.
    """

    def __init__(self, text: str = "", *, id: str) -> None:
        super().__init__(keys_line(text) if text else "", id=id, markup=False)

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show another text."""
        styled = keys_line(content) if isinstance(content, str) and content else content
        super().update(styled, layout=layout)
