"""The base of all pickers: type to search, arrows to move, a preview at the side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.types import CSSPathType
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from agent_tui.ui.sanitise import safe_text

ValueT = TypeVar("ValueT")

MAX_SHOWN = 500
"""Rows drawn at once; searching looks at all of them."""
_GAP = "  "


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
    """

    value: ValueT
    title: str
    columns: tuple[str, ...] = ()
    search: str = ""
    preview: Content | None = None
    is_dim: bool = False


class PickerList(OptionList, can_focus=False):
    """The rows; says when there is another width to fill."""

    class Resized(Message):
        """The list has another size."""

    def on_resize(self) -> None:
        """Tell the screen."""
        self.post_message(self.Resized())


class PickerScreen(ModalScreen[ValueT], Generic[ValueT]):
    """Returns the value of the picked row, or None."""

    CSS_PATH: ClassVar[CSSPathType | None] = "picker.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close"),
        Binding("up", "move(-1)", "Up", priority=True),
        Binding("down", "move(1)", "Down", priority=True),
        Binding("pageup", "move(-8)", "Page up", priority=True),
        Binding("pagedown", "move(8)", "Page down", priority=True),
    ]
    heading = "Pick"
    placeholder = "Type to search"
    nothing = "Nothing found."
    column_titles: tuple[str, ...] = ()
    has_preview = False

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[PickerRow[ValueT]] = []
        self._shown: list[PickerRow[ValueT]] = []
        self._is_loading = True

    def compose(self) -> ComposeResult:
        """Search field, list, preview, a line of keys."""
        with Vertical(id="picker", classes="-with-preview" if self.has_preview else ""):
            yield Static(self.heading, id="picker-heading", markup=False)
            yield Input(placeholder=self.placeholder, id="picker-search")
            yield Static(id="picker-columns", markup=False)
            with Horizontal(id="picker-body"):
                yield PickerList(id="picker-list", markup=False, compact=True)
                if self.has_preview:
                    with VerticalScroll(id="picker-preview", can_focus=False):
                        yield Static(id="picker-preview-text", markup=False)
            yield Static("Loading…", id="picker-message", markup=False)
            yield Static(self.keys_hint, id="picker-keys", markup=False)

    @property
    def keys_hint(self) -> str:
        """The line at the bottom."""
        return "↑↓ move · enter choose · esc close"

    async def load_rows(self) -> Sequence[PickerRow[ValueT]]:
        """Everything there is to pick, best first. Runs in a worker."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Load behind the first paint."""
        self.query_one("#picker-search").focus()
        self.run_worker(self._load(), exclusive=True)

    async def _load(self) -> None:
        self._rows = list(await self.load_rows())
        self._is_loading = False
        self._fill()

    @property
    def _list(self) -> OptionList:
        return self.query_one("#picker-list", OptionList)

    @on(Input.Changed, "#picker-search")
    def _search_changed(self, event: Input.Changed) -> None:
        event.stop()
        if not self._is_loading:
            self._fill()

    @on(Input.Submitted, "#picker-search")
    def _search_submitted(self, event: Input.Submitted) -> None:
        event.stop()
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
            self.query_one("#picker-preview-text", Static).update(row.preview or "")
            self.query_one("#picker-preview").scroll_home(animate=False)
            self.row_highlighted(row)
        elif event.option_index < len(self._shown):
            self.row_highlighted(self._shown[event.option_index])

    def row_highlighted(self, row: PickerRow[ValueT]) -> None:
        """A row became the current one; for pickers that show its effect."""

    @on(PickerList.Resized)
    def _fit(self, event: PickerList.Resized) -> None:
        event.stop()
        if not self._is_loading:
            self._fill()

    def action_move(self, step: int) -> None:
        """Move the highlight without leaving the search field."""
        if self._shown:
            present = self._list.highlighted or 0
            self._list.highlighted = min(max(present + step, 0), len(self._shown) - 1)

    def action_leave(self) -> None:
        """Close without a result."""
        self.dismiss(None)

    def _pick(self, index: int | None) -> None:
        if index is not None and index < len(self._shown):
            self.dismiss(self._shown[index].value)

    def _fill(self) -> None:
        wanted = self.query_one("#picker-search", Input).value
        before = self._list.highlighted
        found = search_rows(self._rows, wanted)[:MAX_SHOWN]
        same_rows = found == self._shown
        self._shown = found
        width = max(self._list.scrollable_content_region.width, 20)
        widths = column_widths([self.column_titles, *(row.columns for row in found)])
        self._list.set_options(Option(_line(row, widths, width)) for row in found)
        if found:
            self._list.highlighted = before if same_rows and before is not None else 0
        self._show_headings(widths, width)
        message = self.query_one("#picker-message", Static)
        message.display = not found
        message.update(self.nothing if not wanted else f"Nothing matches {wanted!r}.")

    def _show_headings(self, widths: Sequence[int], width: int) -> None:
        titles = self.query_one("#picker-columns", Static)
        titles.display = bool(self.column_titles)
        if self.column_titles:
            heading = PickerRow(None, "", self.column_titles)
            titles.update(_line(heading, widths, width))


def search_rows(rows: Sequence[PickerRow[ValueT]], wanted: str) -> list[PickerRow[ValueT]]:
    """The rows with every word of `wanted` in title or search text; else a fuzzy match.

    Their order stays, so that what is newest or best comes first among what matches.
    """
    words = wanted.lower().split()
    if not words:
        return list(rows)
    found = [row for row in rows if all(word in _haystack(row) for word in words)]
    if found:
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


def _line(row: PickerRow[ValueT], widths: Sequence[int], width: int) -> Content:
    """Title, then the columns right-aligned; columns give way from the left if room is short."""
    kept = list(range(len(row.columns)))
    while kept and sum(widths[i] + len(_GAP) for i in kept) > width - 16:
        kept.pop(0)
    room = width - sum(widths[i] + len(_GAP) for i in kept)
    title = Content(safe_text(row.title, keep_newlines=False)).truncate(
        room, ellipsis=True, pad=True
    )
    if row.is_dim:
        title = title.stylize("$foreground-muted")
    cells: list[Content | str] = [title]
    for i in kept:
        text = safe_text(row.columns[i], keep_newlines=False)
        cells.append(_GAP + " " * max(widths[i] - Content(text).cell_length, 0))
        cells.append(Content.assemble((text, "$foreground-muted")))
    return Content.assemble(*cells)
