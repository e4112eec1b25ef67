"""The rows of a block stack on the screen: drawing, marking and selecting them."""

from typing import Protocol

from rich.segment import Segment
from rich.style import Style
from textual import getters
from textual.app import App
from textual.geometry import Offset, Region
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from agent_tui.ui.styled_lines import BLANK, Line
from agent_tui.ui.theme.palette import plain_palette
from agent_tui.ui.transcript.markdown import markdown_parser
from agent_tui.ui.transcript.painter import BlockPainter
from agent_tui.ui.transcript.selection import address, highlighted, selected_text
from agent_tui.ui.transcript.stack import BlockStack

MAX_CACHED_STRIPS = 500


class RowMarks(Protocol):
    """What is to stand out on the rows, whatever their blocks are."""

    def marked(self, index: int, row: int, line: Line) -> Line:
        """`line`, the row `row` of the block at `index`, with its marks, or itself."""
        ...


def _any_app() -> type[App[object]]:
    return App


class RowView(ScrollView, can_focus=False):
    """Draws the rows of a `BlockStack` at the scroll offset it is given.

    It never takes the focus: what is typed after a click in it belongs to the prompt.
    """

    ALLOW_SELECT = True

    app = getters.app(_any_app)

    DEFAULT_CSS = """
    RowView {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        background: $background;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
        scrollbar-color: $foreground 20%;
        scrollbar-color-hover: $foreground 35%;
        scrollbar-color-active: $primary;
        &:ansi {
            scrollbar-color: $scrollbar;
            scrollbar-color-hover: $scrollbar-hover;
        }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._parser = markdown_parser()
        self._palette = plain_palette()
        self._stack = BlockStack(self._painter(80))
        self._marks: RowMarks | None = None
        self._base_style: Style | None = None
        self._strips: dict[tuple[int, int], tuple[Line, Strip]] = {}

    def _painter(self, width: int) -> BlockPainter:
        return BlockPainter(self._palette, self._parser, width, show_thinking=False)

    def render_line(self, y: int) -> Strip:
        """The row `y` of the screen."""
        width, base = self.size.width, self._base()
        if not len(self._stack):
            return Strip.blank(width, base)
        index, row = self._stack.at(self.scroll_offset.y + y)
        gap = self._stack.gap(index)
        if row < gap and index:
            # Blank rows belong to the block above them: a selection may end there.
            above = self._stack[index - 1]
            return _strip(BLANK, above.id, above.height + row, width, base)
        rows = self._stack.rows(index)
        row -= gap
        item_id = self._stack[index].id
        drawn = line = rows[row] if 0 <= row < len(rows) else BLANK
        if self._marks is not None:
            line = self._marks.marked(index, row, line)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(address(item_id, max(0, row)))):
            style = self.screen.get_component_rich_style("screen--selection")
            selected = Line(highlighted(line, span, style))
            return _strip(selected, item_id, max(0, row), width, base)
        if line is not drawn:
            return _strip(line, item_id, row, width, base)
        return self._cached_strip(line, item_id, max(0, row), width, base)

    def _base(self) -> Style:
        """The widget's own colours, below everything."""
        if self._base_style is None:
            self._base_style = self.rich_style
            self._strips.clear()
        return self._base_style

    def notify_style_update(self) -> None:
        """The style sheet may have changed our colours."""
        super().notify_style_update()
        self._base_style = None

    def _cached_strip(self, line: Line, block_id: int, row: int, width: int, base: Style) -> Strip:
        cached = self._strips.get((block_id, row))
        if cached is not None and cached[0] is line and cached[1].cell_length == width:
            return cached[1]
        if len(self._strips) >= MAX_CACHED_STRIPS:
            self._strips.clear()
        strip = _strip(line, block_id, row, width, base)
        self._strips[block_id, row] = (line, strip)
        return strip

    def _refresh_from(self, index: int, row: int) -> None:
        """Paint again what is below a row of a block."""
        top = self._stack.top(index) + self._stack.gap(index) + row - self.scroll_offset.y
        width, height = self.size
        if top < height:
            top = max(0, top)
            self.refresh(Region(0, top, width, height - top))

    # Selecting ---------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, wrapped rows joined again, without bars and gutters."""
        return selected_text(self._stack, selection), "\n"

    def _row_at(self, offset: Offset | None) -> tuple[int, Line] | None:
        """The block index and the row under a mouse position of this widget."""
        if offset is None or not len(self._stack):
            return None
        index, row = self._stack.at(self.scroll_offset.y + offset.y)
        row -= self._stack.gap(index)
        rows = self._stack.rows(index)
        return (index, rows[row]) if 0 <= row < len(rows) else None


def _strip(line: Line, block_id: int, row: int, width: int, base: Style) -> Strip:
    """A row of the screen that knows its address for selecting."""
    strip = Strip(line.segments or (Segment(" "),)).adjust_cell_length(width)
    return strip.apply_style(base).apply_offsets(0, address(block_id, row))
