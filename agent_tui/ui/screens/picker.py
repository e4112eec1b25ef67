"""The base of all pickers: one frame, type to search, arrows to move, a preview at the side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.types import CSSPathType
from textual.visual import Visual
from textual.widgets import Input, Static

from agent_tui.safe_text import safe_text
from agent_tui.ui.parts import FieldRow, KeysLine, PaintedLines
from agent_tui.ui.screens.modal import Modal

ValueT = TypeVar("ValueT")

_GAP = "  "


class RowList(ScrollView, can_focus=False):
    """Rows of one line, one of them current; only those in sight are drawn."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"row-list--current", "row-list--hovered"}

    class Moved(Message):
        """Another row is the current one."""

    class Resized(Message):
        """The rows have another width."""

    @dataclass
    class Clicked(Message):
        """A row was clicked."""

        index: int

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._draw: Callable[[int, int], Content] = lambda _index, _width: Content()
        self._hovered = -1
        self.count = 0
        """How many rows there are."""
        self.current = -1
        """The index of the current row; -1 if there are none."""

    def show(self, count: int, draw: Callable[[int, int], Content], current: int) -> None:
        """Show other rows.

        Args:
            count: Number of rows.
            draw: Returns the content of a row, by index and width in cells.
            current: The row that is current, and in sight.
        """
        self.count, self._draw, self.current = count, draw, -1
        self.virtual_size = Size(0, count)
        self.move_to(current)
        self.refresh()

    def move_to(self, index: int) -> None:
        """Make the row at `index`, or the nearest one, the current row."""
        index = min(max(index, 0), self.count - 1)
        if index != self.current:
            self.current = index
            self._scroll_to_current()
            self.refresh()
            self.post_message(self.Moved())

    def line(self, index: int) -> Content:
        """A row at the present width."""
        return self._draw(index, self.scrollable_content_region.width)

    def on_resize(self) -> None:
        """Keep the current row in sight."""
        self._scroll_to_current()
        self.post_message(self.Resized())

    def watch_show_vertical_scrollbar(self) -> None:
        """The bar takes a cell of the rows, or gives it back."""
        self.post_message(self.Resized())

    def on_click(self, event: events.Click) -> None:
        """Tell which row it was."""
        if (index := round(self.scroll_offset.y) + event.y) < self.count:
            self.post_message(self.Clicked(index))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Show which row a click would take."""
        self._hover(round(self.scroll_offset.y) + event.y)

    def on_leave(self) -> None:
        """Clear the hover mark."""
        self._hover(-1)

    def _hover(self, index: int) -> None:
        if index != self._hovered:
            self._hovered = index
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The row at `y` of the screen."""
        index = round(self.scroll_offset.y) + y
        width = self.scrollable_content_region.width
        if not 0 <= index < self.count or width <= 0:
            return Strip.blank(width, self.rich_style)
        style = self.visual_style
        if index == self.current:
            style = self.get_visual_style("row-list--current")
        elif index == self._hovered:
            style = self.get_visual_style("row-list--hovered")
        (strip,) = Visual.to_strips(self, self.line(index), width, 1, style, pad=True)
        return strip

    def _scroll_to_current(self) -> None:
        if self.scrollable_content_region.height > 0:
            region = Region(0, self.current, 1, 1)
            self.scroll_to_region(region, animate=False, force=True, immediate=True)


@dataclass(frozen=True, slots=True)
class PickerRow(Generic[ValueT]):
    """One thing to pick.

    Attributes:
        value: What the screen returns.
        title: First column, gets the room that is left.
        tag: Follows the title. It is cut only if it is longer than half of their room, and than
            what the title leaves.
        columns: Further columns, short.
        search: Text that is searched besides the title.
        preview: Shown at the side.
        is_dim: Drawn less bright (it cannot be used now, or belongs elsewhere).
        guide: Drawn before the title while nothing is searched for: how rows hang together.
        line: Draws the row in so many cells, in place of title and columns.
        is_heading: Only names the rows below it; cannot be picked.
    """

    value: ValueT
    title: str
    columns: tuple[str, ...] = ()
    search: str = ""
    tag: str = ""
    preview: Content | None = None
    is_dim: bool = False
    guide: str = ""
    is_heading: bool = False
    line: Callable[[int], Content] | None = None


class PickerScreen(Modal[ValueT], Generic[ValueT]):
    """Returns the value of the picked row, or None.

    A heading, a search field, the rows with a preview beside them where it is wide, and the keys.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "picker.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close"),
        Binding("up", "move(-1)", "Up", priority=True),
        Binding("down", "move(1)", "Down", priority=True),
        Binding("pageup", "move(-8)", "Page up", priority=True),
        Binding("pagedown", "move(8)", "Page down", priority=True),
    ]
    heading = "Pick"
    placeholder = "Type to search"
    has_preview = False
    nothing = "Nothing found."
    column_titles: tuple[str, ...] = ()
    searches_at_once = True
    """Whether letters go to the search field from the beginning."""
    keeps_place = False
    """Whether another search leaves the highlight on its row, if that is still there."""
    title_width = 16
    """Cells the titles keep; columns give way to them."""

    def __init__(self) -> None:
        super().__init__()
        self._field = Input(placeholder=self.placeholder, id="picker-search", compact=True)
        self._rows: list[PickerRow[ValueT]] = []
        self._shown: list[PickerRow[ValueT]] = []
        self._shown_for = ""
        self._widths: list[int] = []
        self._is_loading = True
        self._note = ""
        self.standing_note = ""
        """Shown below the rows whatever is searched for."""

    @property
    def keys_hint(self) -> str:
        """The line at the bottom."""
        return "↑↓ move · enter choose · esc close"

    def compose(self) -> ComposeResult:
        """Heading, search field, rows with their preview, message and keys, in one frame."""
        with Vertical(id="picker", classes="frame -with-preview" if self.has_preview else "frame"):
            yield Static(self.heading, id="picker-heading", markup=False)
            yield FieldRow(self._field)
            columns = Static(id="picker-columns", markup=False)
            columns.display = False
            yield columns
            with Horizontal(id="picker-body"):
                yield RowList(id="picker-list")
                if self.has_preview:
                    with VerticalScroll(id="picker-preview", can_focus=False):
                        yield Static(id="picker-preview-text", markup=False)
                        yield PaintedLines(id="picker-preview-end")
            yield Static("Loading…", id="picker-message", markup=False)
            yield KeysLine(self.keys_hint, id="picker-keys")

    async def load_rows(self) -> Sequence[PickerRow[ValueT]]:
        """Everything there is to pick, best first. Runs in a worker."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Load the rows after the first paint."""
        if self.searches_at_once:
            self._field.focus()
        self.run_worker(self._load, exclusive=True)

    async def _load(self) -> None:
        self.show_rows(await self.load_rows())

    def show_rows(self, rows: Sequence[PickerRow[ValueT]]) -> None:
        """Pick from `rows` from now on; the highlight stays on the same value."""
        self._rows = list(rows)
        self._is_loading = False
        self.refill()

    def matching(self, wanted: str) -> Sequence[PickerRow[ValueT]]:
        """The rows to show for the search text `wanted`."""
        return search_rows(self._rows, wanted)

    def first_row(self, rows: Sequence[PickerRow[ValueT]]) -> int:
        """The index of the first highlighted row."""
        return 0

    @property
    def wanted(self) -> str:
        """The text in the search field."""
        return self._field.value

    @property
    def present_row(self) -> PickerRow[ValueT] | None:
        """The row with the highlight."""
        return self._shown[self._list.current] if self._shown else None

    def say(self, text: str) -> None:
        """Show a line below the rows until the search text changes."""
        self._note = text
        self._show_message()

    @property
    def preview_end(self) -> PaintedLines:
        """What follows the preview of a row, for pickers that have more to show."""
        return self.query_one("#picker-preview-end", PaintedLines)

    @property
    def _list(self) -> RowList:
        return self.query_one("#picker-list", RowList)

    @on(Input.Changed, "#picker-search")
    def _search_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._note = ""
        if not self._is_loading:
            self.search()

    def search(self) -> None:
        """Show the rows for the text in the search field."""
        self.refill()

    @on(Input.Submitted, "#picker-search")
    def _search_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._pick_current()

    @on(RowList.Clicked)
    def _pass_click(self, event: RowList.Clicked) -> None:
        event.stop()
        if not self._shown[event.index].is_heading:
            self.take_click(event.index)

    def take_click(self, index: int) -> None:
        """A row was clicked: pick it."""
        self._list.move_to(index)
        self._pick_current()

    def _pick_current(self) -> None:
        if (row := self.present_row) is not None:
            self.pick(row)

    @on(RowList.Moved)
    def _show_current(self, event: RowList.Moved) -> None:
        event.stop()
        if (row := self.present_row) is None:
            return
        if self.has_preview:
            self.query_one("#picker-preview-text", Static).update(self.preview_of(row))
            self.query_one("#picker-preview").scroll_home(animate=False)
        self.row_highlighted(row)

    def preview_of(self, row: PickerRow[ValueT]) -> Content:
        """The preview of a row, known without reading anything."""
        return row.preview or Content("")

    def row_highlighted(self, row: PickerRow[ValueT]) -> None:
        """A row became the current one; for pickers that show its effect."""

    @on(RowList.Resized)
    def _fit(self, event: RowList.Resized) -> None:
        event.stop()
        self._show_column_titles()

    def action_move(self, step: int) -> None:
        """Move the highlight without leaving the search field; skips headings."""
        if self._shown:
            place = min(max(self._list.current + step, 0), len(self._shown) - 1)
            after, before = range(place, len(self._shown)), range(place, -1, -1)
            ways = (*after, *before) if step > 0 else (*before, *after)
            self._list.move_to(next(n for n in ways if not self._shown[n].is_heading))

    def action_search(self) -> None:
        """Focus the search field, for pickers whose keys do something else at first."""
        self._field.focus()

    def action_leave(self) -> None:
        """Clear the search and end one that was begun with a key, else close without a result."""
        is_begun = self._field.has_focus and not self.searches_at_once
        if is_begun:
            self.set_focus(None)
        if self._field.value:
            self._field.value = ""
        elif not is_begun:
            self.dismiss(None)

    def pick(self, row: PickerRow[ValueT]) -> None:
        """A row was chosen: close with its value."""
        self.dismiss(row.value)

    def refill(self) -> None:
        """Search again; a new search begins at its first row unless it `keeps_place`."""
        wanted, before = self.wanted, self.present_row
        found = list(self.matching(wanted))
        stays = self.keeps_place or wanted == self._shown_for
        place = next((n for n, row in enumerate(found) if before and row.value == before.value), -1)
        if place < 0 or not stays:
            is_first = found and (self.keeps_place or not wanted)
            place = self.first_row(found) if is_first else 0
        self._shown, self._shown_for = found, wanted
        self._widths = column_widths([self.column_titles, *(row.columns for row in found)])
        self._list.show(len(found), self._line, place)
        if not found and self.has_preview:
            self.query_one("#picker-preview-text", Static).update("")
            self.preview_end.show()
        self._show_column_titles()
        self._show_message()

    def _line(self, index: int, width: int) -> Content:
        row = self._shown[index]
        if row.line is not None:
            return row.line(width)
        if self._shown_for:
            row = replace(row, guide="")
        return picker_line(row, self._widths, width, self.title_width)

    def _show_message(self) -> None:
        wanted = self._shown_for
        nothing = f"Nothing matches {wanted!r}." if wanted.strip() else self.nothing
        text = self._note or ("" if self._shown or self._is_loading else nothing)
        texts = (safe_text(one, keep_newlines=False) for one in (text, self.standing_note) if one)
        message = self.query_one("#picker-message", Static)
        message.update("\n".join(texts))
        message.display = bool(text or self.standing_note)

    def _show_column_titles(self) -> None:
        titles = self.query_one("#picker-columns", Static)
        titles.display = bool(self.column_titles) and not self._is_loading
        if titles.display:
            heading = PickerRow(None, "", self.column_titles)
            width = self._list.scrollable_content_region.width
            titles.update(picker_line(heading, self._widths, width, self.title_width))


def search_rows(
    rows: Sequence[PickerRow[ValueT]], wanted: str, *, fuzzy: bool = True
) -> list[PickerRow[ValueT]]:
    """The rows with every word of `wanted` in title or search text; with `fuzzy` else like it.

    Their order stays, so that what is newest or best comes first among what matches.
    """
    words = wanted.lower().split()
    if not words:
        return list(rows)
    found = [row for row in rows if all(word in _haystack(row) for word in words)]
    if found or not fuzzy:
        return found
    from rapidfuzz import fuzz  # only if no row contains the typed text

    scores = [(fuzz.partial_ratio(wanted.lower(), row.title.lower()), row) for row in rows]
    close = [(score, row) for score, row in scores if score >= 70]
    return [row for _, row in sorted(close, key=lambda pair: -pair[0])]


def _haystack(row: PickerRow[ValueT]) -> str:
    return f"{row.title}{row.tag}\n{row.search}\n{' '.join(row.columns)}".lower()


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """The cells each column needs."""
    count = max((len(row) for row in rows), default=0)
    return [
        max((cell_len(row[column]) for row in rows if column < len(row)), default=0)
        for column in range(count)
    ]


def picker_line(
    row: PickerRow[ValueT], widths: Sequence[int], width: int, title_width: int
) -> Content:
    """Title, then the columns right-aligned; the left columns are dropped if space is short."""
    kept = list(range(len(row.columns)))
    while kept and sum(widths[i] + len(_GAP) for i in kept) > width - title_width:
        kept.pop(0)
    room = width - sum(widths[i] + len(_GAP) for i in kept)
    named = safe_text(row.title, keep_newlines=False)
    style = "$foreground-muted" if row.is_dim else ""
    title = Content.assemble((row.guide, "$text-disabled"), (named, style))
    tag = Content.styled(safe_text(row.tag, keep_newlines=False), style)
    tag = tag.truncate(max(room // 2, room - title.cell_length), ellipsis=True)
    title = title.truncate(min(title.cell_length, room - tag.cell_length), ellipsis=True)
    cells: list[Content | str] = [(title + tag).truncate(room, pad=True)]
    for i in kept:
        text = safe_text(row.columns[i], keep_newlines=False)
        cells.append(_GAP + " " * max(widths[i] - cell_len(text), 0))
        cells.append(Content.assemble((text, "$foreground-muted")))
    return Content.assemble(*cells)
