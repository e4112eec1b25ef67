"""A scrolling view of a block stack: keeps the place, follows the end, draws ahead when idle."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol, cast

from rich.segment import Segment
from rich.style import Style
from textual import getters
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.theme import Theme
from textual.timer import Timer
from textual.widget import Widget

from agent_tui.ui.parts import any_app
from agent_tui.ui.styled_lines import BLANK, Line
from agent_tui.ui.theme.palette import Palette, palette_of
from agent_tui.ui.theme.themes import CONTENT_WIDTH
from agent_tui.ui.transcript.markdown import markdown_parser
from agent_tui.ui.transcript.painter import BlockPainter
from agent_tui.ui.transcript.stack import (
    BlockStack,
    RowAnchor,
    address,
    highlight,
    text_in_selection,
)

_IDLE_INTERVAL_S = 0.03
_IDLE_SLICE_S = 0.008
"""Drawing ahead takes about a quarter of the time and never delays a key noticeably."""

_KEPT_AROUND = 40
"""Blocks above and below the screen whose rows are kept in any case."""

_NEAR_SCREENS = 4
"""A scroll of fewer screens is relative to the view; a longer one is a jump."""

_MAX_CACHED_STRIPS = 500

_EARLIER_SCREENS = 2
"""Earlier messages are requested when this many screens are left above."""


class RowMarker(Protocol):
    """Marks rows of a view, for example what a search found."""

    def mark_line(self, index: int, row: int, line: Line) -> Line:
        """Return `line`, a row of the block at `index`, with the marks on it."""
        ...


class StackView(ScrollView, can_focus=False):
    """Shows the rows of a `BlockStack`; what the blocks are about is left to a subclass.

    It never takes the focus: what is typed after a click in it belongs to the prompt.
    """

    ALLOW_SELECT = True

    app = getters.app(any_app)

    DEFAULT_CSS = """
    StackView {
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

    @dataclass
    class FollowChanged(Message):
        """The view began or ceased to follow the end, or blocks came while it did not.

        `new_count` blocks were added below since the user scrolled up.
        """

        following: bool
        new_count: int

    @dataclass
    class EarlierWanted(Message):
        """The user is near the top, and earlier messages are not loaded yet."""

    def __init__(self) -> None:
        super().__init__()
        self._has_earlier = False
        self._parser = markdown_parser()
        self._palette = Palette()
        self._stack = BlockStack(self._painter(80))
        self._marker: RowMarker | None = None
        self._base_style: Style | None = None
        self._strips: dict[tuple[int, int], tuple[Line, Strip]] = {}
        self._place: RowAnchor | None = None
        self._is_following = True
        self._new_count = 0
        self._is_settling = False
        self._settled_size = Size(0, 0)
        self._ahead: Iterator[None] | None = None
        self._idle_timer: Timer | None = None

    @property
    def stack(self) -> BlockStack:
        """Its blocks."""
        return self._stack

    @property
    def palette(self) -> Palette:
        """The colours in use."""
        return self._palette

    @property
    def is_following(self) -> bool:
        """Whether new rows at the end scroll into sight."""
        return self._is_following

    def follow_end(self) -> None:
        """Go to the end and stay there."""
        self._set_following(True)
        self._settle()

    def offer_earlier(self, has_earlier: bool) -> None:
        """Say whether there is more above; `EarlierWanted` asks for it once."""
        self._has_earlier = has_earlier
        self._ask_for_earlier()

    def _ask_for_earlier(self) -> None:
        height = self.scrollable_content_region.height
        is_near = self.scroll_offset.y < _EARLIER_SCREENS * height and self._marker is None
        if self._has_earlier and is_near and self._place is not None:
            self._has_earlier = False
            self.post_message(self.EarlierWanted())

    def on_mount(self) -> None:
        """Take over the theme and get ready to draw ahead."""
        self._idle_timer = self.set_interval(_IDLE_INTERVAL_S, self._draw_ahead, pause=True)
        self.app.theme_changed_signal.subscribe(self, self._retheme)
        self._retheme(self.app.current_theme)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Rows of the screen.

        Textual sends no Resize to a widget whose region was asked for before its first layout,
        so a width that nobody told about is found here.
        """
        if self._content_width != self._stack.painter.width:
            self.call_later(self.on_resize)
        return super().render_lines(crop)

    # Rows -------------------------------------------------------------------------------

    @property
    def _content_width(self) -> int:
        """Cells to draw in: the screen's, or the content's with its right margin."""
        return min(self.scrollable_content_region.width, CONTENT_WIDTH - 1)

    def _painter(self, width: int) -> BlockPainter:
        return BlockPainter(self._palette, self._parser, width, show_thinking=False)

    def render_line(self, y: int) -> Strip:
        """The row `y` of the screen."""
        width, base = self.size.width, self._base()
        if not len(self._stack):
            return Strip.blank(width, base)
        if (y := y - self._inset) < 0:
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
        if self._marker is not None:
            line = self._marker.mark_line(index, row, line)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(address(item_id, max(0, row)))):
            style = self.screen.get_component_rich_style("screen--selection")
            selected = Line(highlight(line, span, style))
            return _strip(selected, item_id, max(0, row), width, base)
        if line is not drawn:
            return _strip(line, item_id, row, width, base)
        return self._strip_from_cache(line, item_id, max(0, row), width, base)

    @property
    def _inset(self) -> int:
        """Blank rows above a few blocks that stand in the middle of the view."""
        return 0

    def _base(self) -> Style:
        """The widget's own colours, below everything."""
        if self._base_style is None:
            self._base_style = self.rich_style
            self._strips.clear()
        return self._base_style

    def notify_style_update(self) -> None:
        """Note that the style sheet may have changed our colours."""
        super().notify_style_update()
        self._base_style = None

    def _strip_from_cache(
        self, line: Line, block_id: int, row: int, width: int, base: Style
    ) -> Strip:
        cached = self._strips.get((block_id, row))
        if cached is not None and cached[0] is line and cached[1].cell_length == width:
            return cached[1]
        if len(self._strips) >= _MAX_CACHED_STRIPS:
            self._strips.clear()
        strip = _strip(line, block_id, row, width, base)
        self._strips[block_id, row] = (line, strip)
        return strip

    def _refresh_from(self, index: int, row: int) -> None:
        """Paint again what is below a row of a block."""
        top = self._stack.top(index) + self._stack.gap(index) + row - self.scroll_offset.y
        top += self._inset
        width, height = self.size
        if top < height:
            top = max(0, top)
            self.refresh(Region(0, top, width, height - top))

    # Keeping the place -------------------------------------------------------------------

    def _set_following(self, following: bool) -> None:
        if following:
            self._new_count, changed = 0, not self._is_following
        else:
            changed = self._is_following
        self._is_following = following
        if changed:
            self.post_message(self.FollowChanged(following, self._new_count))

    def _settle(self, *, is_rewrapped: bool = False) -> None:
        """Draw what is on the screen and put the scroll where it belongs after a change."""
        height = self.scrollable_content_region.height
        if not height or not self.is_attached:
            return
        stack = self._stack
        if self._is_following or self._place is None:
            total = -1
            while total != stack.total_rows:
                total = stack.total_rows
                stack.measure(max(0, total - height), height)
            self._put(max(0, total - height))
        else:
            place = self._place
            y = stack.find(place, is_rewrapped=is_rewrapped)
            stack.measure(y, height)
            # The text first seen decides, or each of many resizes would drift a little.
            self._put(y, text_of=place)

    def _settle_in_place(self) -> None:
        """Draw what is on the screen after a change, its first row staying where it is."""
        height = self.scrollable_content_region.height
        if self._place is not None and height:
            y = self._stack.find(self._place, is_rewrapped=False)
            self._stack.measure(y, height)
            self._set_following(y >= self._stack.total_rows - height)
            self._put(y)
            self.refresh()

    def _put(self, y: int, text_of: RowAnchor | None = None) -> None:
        """Scroll to `y` and remember the place, by the text of `text_of` where given."""
        self._is_settling = True
        try:
            self._take_size()
            self.scroll_to(y=y, animate=False, force=True)
        finally:
            self._is_settling = False
        self._settled_size = self.size
        place = self._stack.place(self.scroll_offset.y)
        if place is not None and text_of is not None and place.id == text_of.id:
            place = replace(place, offset=text_of.offset)
        self._place = place
        self._ask_for_earlier()

    def _take_size(self) -> None:
        """Tell the scroll bar how long the chat is.

        A change of `virtual_size` lays the screen out again and paints the whole view; that is
        only needed when the scroll bar comes or goes.
        """
        region = self.scrollable_content_region
        size = Size(region.width, self._stack.total_rows)
        if size == self.virtual_size:
            return
        has_bar = size.height > region.height
        if has_bar and self.show_vertical_scrollbar and size.width == self.virtual_size.width:
            self.set_reactive(cast("Reactive[Size]", Widget.virtual_size), size)
            self.vertical_scrollbar.window_virtual_size = size.height
        else:
            self.virtual_size = size

    def _shift(self) -> None:
        """Heights changed out of sight: move the numbers, not what is on the screen."""
        total, height = self._stack.total_rows, self.scrollable_content_region.height
        if self._place is None or not height or self.size != self._settled_size:
            return
        y = self._stack.find(self._place, is_rewrapped=False)
        if self._is_following and y != max(0, total - height):
            self._settle()
            return
        self._take_size()
        self.set_scroll(None, y)
        self.set_reactive(cast("Reactive[float]", Widget.scroll_target_y), float(y))
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = y

    def watch_show_vertical_scrollbar(self, is_shown: bool) -> None:
        """A bar that comes shows where the chat is, which may have scrolled before it came."""
        if is_shown:
            self.vertical_scrollbar.position = self.scroll_y

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Tell the user's scrolling from our own and from the clamping of a resize."""
        super().watch_scroll_y(old_value, new_value)
        if self._is_settling or self.size != self._settled_size:
            return
        old, new = round(old_value), round(new_value)
        if new >= self.max_scroll_y:
            self.follow_end()
        elif new != old:
            if new < old:
                self._set_following(False)
            self._settle_scroll(old, new)

    def _settle_scroll(self, old: int, new: int) -> None:
        """Draw what scrolled into sight; where guesses were wrong, correct for them."""
        stack, height = self._stack, self.scrollable_content_region.height
        place, delta = self._place, new - old
        if new <= 0 or place is None or abs(delta) > _NEAR_SCREENS * height:
            place, delta = stack.place(new), 0
        y = new
        while place is not None:
            stack.measure(y, height)
            corrected = max(0, stack.find(place, is_rewrapped=False) + delta)
            if corrected == y:
                break
            y = corrected
        self._put(y)

    def on_resize(self) -> None:
        """Wrap anew for another width, near the screen first; the text stays in its place."""
        is_rewrapped = self._content_width != self._stack.painter.width
        if is_rewrapped:
            self._restyle(keeps_heights=False)
        self._settle(is_rewrapped=is_rewrapped)
        self.refresh()

    def _retheme(self, _theme: Theme) -> None:
        """Take over the colours of a new theme; what is on the screen is drawn at once."""
        palette = palette_of(self.app)
        if palette != self._palette:
            self._palette = palette
            self._restyle(keeps_heights=True)
            self.refresh()

    def _restyle(self, *, keeps_heights: bool) -> None:
        width = self._content_width or self._stack.painter.width
        self._strips.clear()
        self._stack.restyle(self._painter(width), keeps_heights=keeps_heights)
        self._wake()

    # Drawing ahead -----------------------------------------------------------------------

    def _wake(self) -> None:
        """There may be blocks whose height is a guess: draw them when there is time."""
        self._ahead = None
        if self._idle_timer is not None:
            self._idle_timer.resume()

    def _draw_ahead(self) -> None:
        """Draw for a few milliseconds; the place on the screen does not move."""
        if not self.scrollable_content_region.width or self._idle_timer is None:
            return
        ahead = self._ahead = self._ahead or self._drawing_ahead()
        deadline = perf_counter() + _IDLE_SLICE_S
        is_done = False
        while not is_done and perf_counter() < deadline:
            is_done = next(ahead, _DONE) is _DONE
        if is_done:
            self._ahead = None
            self._idle_timer.pause()
        self._shift()
        seen = self._stack.visible(self.scroll_offset.y, self.size.height)
        self._stack.drop_rows_far_from(seen.start - _KEPT_AROUND, seen.stop + _KEPT_AROUND)

    def _drawing_ahead(self) -> Iterator[None]:
        """Steps that draw every guessed block: upwards from the screen, then downwards."""
        start = self._stack.visible(self.scroll_offset.y, self.size.height).start
        for index in (*range(start, -1, -1), *range(start + 1, len(self._stack))):
            if index < len(self._stack) and not self._stack[index].is_measured:
                yield from self._stack.drawing(index)
            yield

    # Selecting ---------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, wrapped rows joined again, without bars and gutters."""
        return text_in_selection(self._stack, selection), "\n"

    def _row_at(self, offset: Offset | None) -> tuple[int, Line] | None:
        """The block index and the row under a mouse position of this widget."""
        if offset is None or not len(self._stack):
            return None
        index, row = self._stack.at(self.scroll_offset.y + offset.y - self._inset)
        row -= self._stack.gap(index)
        rows = self._stack.rows(index)
        return (index, rows[row]) if 0 <= row < len(rows) else None

    # Keys --------------------------------------------------------------------------------

    def action_page_up(self) -> None:
        """One screen up, at once."""
        self.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        """One screen down, at once."""
        self.scroll_page_down(animate=False)


def _strip(line: Line, block_id: int, row: int, width: int, base: Style) -> Strip:
    """A row of the screen that knows its address for selecting."""
    strip = Strip(line.segments or (Segment(" "),)).adjust_cell_length(width)
    return strip.apply_style(base).apply_offsets(0, address(block_id, row))


_DONE = object()
