"""The base of all pickers: one frame, type to search, arrows to move, a preview at the side."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeVar

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
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from agent_tui.safe_text import safe_text
from agent_tui.sessions.lineage.message_tree import RowKind, TreeRow
from agent_tui.sessions.replay.marks import Mark
from agent_tui.ui.parts import FieldRow, KeysLine, PaintedLines
from agent_tui.ui.screens.modal import Modal

ValueT = TypeVar("ValueT")

MAX_SHOWN = 500
"""Rows drawn at once; searching looks at all of them."""
_QUICK_ROWS = 100
"""So many are drawn anew between two keys; with more, only when the typing pauses."""
TYPING_PAUSE_S = 0.04
_GAP = "  "
_SIGNS: dict[RowKind, tuple[str, str]] = {
    "person": ("›", "$primary"),
    "command": ("!", "$text-warning"),
    "reply": (" ", ""),
    "result": ("↳", "$foreground-disabled"),
    "compaction": ("≡", "$text-accent"),
    "branch summary": ("≡", "$text-accent"),
    "note": ("i", "$text-accent"),
}
"""What stands before the text, and its colour."""

MARK_NAMES: dict[Mark, str] = {"keep": "kept", "pin": "always kept", "drop": "left out"}
_HERE = "  here"


class TreeList(ScrollView, can_focus=False):
    """A list with one current row, moved from outside."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"tree-list--current"}

    class Moved(Message):
        """Another row is the current one."""

    @dataclass
    class Clicked(Message):
        """The current row was clicked on."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: Sequence[TreeRow] = ()
        self._current = 0

    @property
    def rows(self) -> Sequence[TreeRow]:
        """What is shown."""
        return self._rows

    @property
    def current(self) -> TreeRow | None:
        """The current row; None if there are no rows."""
        return self._rows[self._current] if self._rows else None

    def show(self, rows: Sequence[TreeRow], current: int) -> None:
        """Show other rows, with the one at the index `current` in sight."""
        self._rows = rows
        self.virtual_size = Size(0, len(rows))
        self._current = -1
        self.move_to(current)
        self.refresh()

    def move(self, step: int) -> None:
        """Go `step` rows down."""
        self.move_to(self._current + step)

    def move_to(self, index: int) -> None:
        """Make the row at `index` the current one, or the nearest there is."""
        index = max(min(index, len(self._rows) - 1), 0)
        if index != self._current:
            self._current = index
            self._scroll_to_current()
            self.refresh()
            self.post_message(self.Moved())

    def on_resize(self) -> None:
        """Keep the current row in sight."""
        self._scroll_to_current()

    def on_click(self, event: events.Click) -> None:
        """Make a row the current one; a click on that picks it."""
        index = round(self.scroll_offset.y) + event.y
        if index == self._current and self._rows:
            self.post_message(self.Clicked())
        elif index < len(self._rows):
            self.move_to(index)

    def render_line(self, y: int) -> Strip:
        """The row at `y` of the screen."""
        index = round(self.scroll_offset.y) + y
        width = self.scrollable_content_region.width
        if not 0 <= index < len(self._rows) or width <= 0:
            return Strip.blank(width, self.rich_style)
        is_current = index == self._current
        style = self.get_visual_style("tree-list--current") if is_current else self.visual_style
        content = row_content(self._rows[index], width)
        (strip,) = Visual.to_strips(self, content, width, 1, style, pad=True)
        return strip

    def _scroll_to_current(self) -> None:
        height = self.scrollable_content_region.height
        if height > 0:
            region = Region(0, self._current, 1, 1)
            self.scroll_to_region(region, animate=False, force=True, immediate=True)


def row_content(row: TreeRow, width: int) -> Content:
    """One row, exactly `width` cells wide."""
    mark, mark_style = ("•", "$primary") if row.is_on_path else (" ", "")
    sign, sign_style = _SIGNS[row.kind]
    text_style = "$foreground" if row.is_on_path else "$foreground-muted"
    if row.kind not in ("person", "command"):
        text_style = "$foreground-muted"
    label = safe_text(row.label, keep_newlines=False)
    left = Content.assemble(
        (f"{mark} ", mark_style),
        (row.guide, "$foreground-disabled"),
        (f"{sign} ", sign_style),
        (f"[{label}] " if label else "", "bold $text-success"),
        (f"({MARK_NAMES[row.mark]}) " if row.mark else "", "$text-warning"),
        (safe_text(row.title, keep_newlines=False), text_style),
    )
    end = Content.assemble((_HERE, "$foreground-muted")) if row.is_here else Content("")
    room = max(width - end.cell_length, 1)
    return Content.assemble(left.truncate(room, ellipsis=True, pad=True), end)


@dataclass(frozen=True, slots=True)
class PickerRow(Generic[ValueT]):
    """One thing to pick.

    Attributes:
        value: What the screen returns.
        title: First column, gets the room that is left.
        columns: Further columns, short.
        search: Text that is searched besides the title.
        preview: Shown at the side.
        is_dim: Drawn less bright (it cannot be used now, or belongs elsewhere).
        guide: Drawn before the title while nothing is searched for: how rows hang together.
        is_heading: Only names the rows below it; cannot be picked.
    """

    value: ValueT
    title: str
    columns: tuple[str, ...] = ()
    search: str = ""
    preview: Content | None = None
    is_dim: bool = False
    guide: str = ""
    is_heading: bool = False


class PickerList(OptionList, can_focus=False):
    """The rows; says when there is another width to fill."""

    class Resized(Message):
        """The list has another size."""

    def on_resize(self) -> None:
        """Tell the screen."""
        self.post_message(self.Resized())

    def watch_show_vertical_scrollbar(self) -> None:
        """Tell the screen: the bar takes a cell of the rows, or gives it back."""
        self.post_message(self.Resized())


class FramedList(Modal[ValueT], Generic[ValueT]):
    """A heading, a search field, a list with a preview beside it where wide, and the keys."""

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "picker.tcss"]
    heading = "Pick"
    placeholder = "Type to search"
    has_preview = False

    def __init__(self) -> None:
        super().__init__()
        self._field = Input(placeholder=self.placeholder, id="picker-search", compact=True)

    @property
    def keys_hint(self) -> str:
        """The line at the bottom."""
        return "↑↓ move · enter choose · esc close"

    def make_list(self) -> Widget:
        """The rows, found as ``#picker-list``."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """All of it in one frame."""
        with Vertical(id="picker", classes="frame -with-preview" if self.has_preview else "frame"):
            yield Static(self.heading, id="picker-heading", markup=False)
            yield FieldRow(self._field)
            columns = Static(id="picker-columns", markup=False)
            columns.display = False
            yield columns
            with Horizontal(id="picker-body"):
                yield self.make_list()
                if self.has_preview:
                    with VerticalScroll(id="picker-preview", can_focus=False):
                        yield Static(id="picker-preview-text", markup=False)
                        yield PaintedLines(id="picker-preview-end")
            yield Static("Loading…", id="picker-message", markup=False)
            yield KeysLine(self.keys_hint, id="picker-keys")


class PickerScreen(FramedList[ValueT], Generic[ValueT]):
    """Returns the value of the picked row, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close"),
        Binding("up", "move(-1)", "Up", priority=True),
        Binding("down", "move(1)", "Down", priority=True),
        Binding("pageup", "move(-8)", "Page up", priority=True),
        Binding("pagedown", "move(8)", "Page down", priority=True),
    ]
    nothing = "Nothing found."
    column_titles: tuple[str, ...] = ()
    searches_at_once = True
    """Whether letters go to the search field from the beginning."""
    title_width = 16
    """Cells the titles keep; columns give way to them."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[PickerRow[ValueT]] = []
        self._shown: list[PickerRow[ValueT]] = []
        self._shown_for = ""
        self._match_count = 0
        self._is_loading = True
        self._note = ""

    def make_list(self) -> Widget:
        """Options that leave the keys to the search field."""
        return PickerList(id="picker-list", markup=False, compact=True)

    async def load_rows(self) -> Sequence[PickerRow[ValueT]]:
        """Everything there is to pick, best first. Runs in a worker."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Load behind the first paint."""
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
        """The rows to show while `wanted` stands in the search field."""
        return search_rows(self._rows, wanted)

    def first_row(self, rows: Sequence[PickerRow[ValueT]]) -> int:
        """Where the highlight is at first, while nothing is searched for."""
        return 0

    @property
    def wanted(self) -> str:
        """What stands in the search field."""
        return self._field.value

    @property
    def present_row(self) -> PickerRow[ValueT] | None:
        """The row with the highlight."""
        self._catch_up()
        return self._highlighted_row

    @property
    def _highlighted_row(self) -> PickerRow[ValueT] | None:
        index = self._list.highlighted
        return self._shown[index] if index is not None and index < len(self._shown) else None

    def say(self, text: str) -> None:
        """Show a line below the rows until something else is searched for."""
        self._note = text
        self._show_message()

    @property
    def _list(self) -> OptionList:
        return self.query_one("#picker-list", OptionList)

    @on(Input.Changed, "#picker-search")
    def _search_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._note = ""
        if self._is_loading:
            return
        if len(self._rows) <= _QUICK_ROWS:
            self.refill()
        else:
            self.run_worker(self._refill_in_a_pause, group="refill", exclusive=True)

    async def _refill_in_a_pause(self) -> None:
        """The next key begins the wait anew."""
        await asyncio.sleep(TYPING_PAUSE_S)
        self._catch_up()

    def _catch_up(self) -> None:
        """Show the rows for what stands in the search field, if they are not there yet."""
        if not self._is_loading and self.wanted != self._shown_for:
            self.refill()

    @on(Input.Submitted, "#picker-search")
    def _search_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._catch_up()
        self._pick(self._list.highlighted)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._pick(event.option_index)

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if self.has_preview and event.option_index < len(self._shown):
            row = self._shown[event.option_index]
            self.query_one("#picker-preview-text", Static).update(self.preview_of(row))
            self.query_one("#picker-preview").scroll_home(animate=False)
            self.row_highlighted(row)
        elif event.option_index < len(self._shown):
            self.row_highlighted(self._shown[event.option_index])

    def preview_of(self, row: PickerRow[ValueT]) -> Content:
        """What is shown of a row at the side, known without reading anything."""
        return row.preview or Content("")

    def row_highlighted(self, row: PickerRow[ValueT]) -> None:
        """A row became the current one; for pickers that show its effect."""

    def nothing_highlighted(self) -> None:
        """No row is left; for pickers that show more of one than its preview."""

    @on(PickerList.Resized)
    def _fit(self, event: PickerList.Resized) -> None:
        event.stop()
        if not self._is_loading:
            self.refill()

    def action_move(self, step: int) -> None:
        """Move the highlight without leaving the search field."""
        self._catch_up()
        if self._shown:
            present = self._list.highlighted or 0
            place = min(max(present + step, 0), len(self._shown) - 1)
            way = (*range(place, len(self._shown)), *range(place, -1, -1))
            back = (*range(place, -1, -1), *range(place, len(self._shown)))
            ahead = way if step > 0 else back
            pickable = (n for n in ahead if not self._shown[n].is_heading)
            self._list.highlighted = next(pickable, present)

    def action_leave(self) -> None:
        """Close without a result."""
        self.dismiss(None)

    def _pick(self, index: int | None) -> None:
        if index is not None and index < len(self._shown):
            self.picked(self._shown[index])

    def picked(self, row: PickerRow[ValueT]) -> None:
        """A row was chosen: close with its value."""
        self.dismiss(row.value)

    def refill(self) -> None:
        """Search again; a new search begins at its first row."""
        wanted, before = self.wanted, self._highlighted_row
        matching = self.matching(wanted)
        found = list(matching[:MAX_SHOWN])
        self._match_count = len(matching)
        stays = before is not None and wanted == self._shown_for
        values = [row.value for row in found] if stays else []
        begin = 0 if wanted or not found else self.first_row(found)
        place = values.index(before.value) if before and before.value in values else begin
        self._shown, self._shown_for = found, wanted
        if wanted:
            found = [replace(row, guide="") for row in found]
        width = max(self._list.scrollable_content_region.width, 20)
        widths = column_widths([self.column_titles, *(row.columns for row in found)])
        lines = (picker_line(row, widths, width, self.title_width) for row in found)
        self._list.set_options(
            Option(line, disabled=row.is_heading) for line, row in zip(lines, found, strict=True)
        )
        if found:
            self._list.highlighted = place
        elif self.has_preview:
            self.query_one("#picker-preview-text", Static).update("")
            self.nothing_highlighted()
        self._show_headings(widths, width)
        self._show_message()

    def _show_message(self) -> None:
        wanted = self._shown_for
        nothing = f"Nothing matches {wanted!r}." if wanted else self.nothing
        further = self._match_count - len(self._shown)
        if self._shown or self._is_loading:
            nothing = f"{further:,} more. Type to narrow the list." if further else ""
        text = self._note or nothing
        message = self.query_one("#picker-message", Static)
        message.display = bool(text)
        message.update(safe_text(text, keep_newlines=False))

    def _show_headings(self, widths: Sequence[int], width: int) -> None:
        titles = self.query_one("#picker-columns", Static)
        titles.display = bool(self.column_titles)
        if self.column_titles:
            heading = PickerRow(None, "", self.column_titles)
            titles.update(picker_line(heading, widths, width, self.title_width))


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
    from rapidfuzz import fuzz  # only when nothing contains what was typed

    scores = [(fuzz.partial_ratio(wanted.lower(), row.title.lower()), row) for row in rows]
    close = [(score, row) for score, row in scores if score >= 70]
    return [row for _, row in sorted(close, key=lambda pair: -pair[0])]


def _haystack(row: PickerRow[ValueT]) -> str:
    return f"{row.title}\n{row.search}\n{' '.join(row.columns)}".lower()


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """The cells each column needs."""
    count = max((len(row) for row in rows), default=0)
    return [
        max((Content(row[column]).cell_length for row in rows if column < len(row)), default=0)
        for column in range(count)
    ]


def picker_line(
    row: PickerRow[ValueT], widths: Sequence[int], width: int, title_width: int
) -> Content:
    """Title, then the columns right-aligned; columns give way from the left if room is short."""
    kept = list(range(len(row.columns)))
    while kept and sum(widths[i] + len(_GAP) for i in kept) > width - title_width:
        kept.pop(0)
    room = width - sum(widths[i] + len(_GAP) for i in kept)
    named = safe_text(row.title, keep_newlines=False)
    style = "$foreground-muted" if row.is_dim else ""
    title = Content.assemble((row.guide, "$text-disabled"), (named, style))
    cells: list[Content | str] = [title.truncate(room, ellipsis=True, pad=True)]
    for i in kept:
        text = safe_text(row.columns[i], keep_newlines=False)
        cells.append(_GAP + " " * max(widths[i] - Content(text).cell_length, 0))
        cells.append(Content.assemble((text, "$foreground-muted")))
    return Content.assemble(*cells)
