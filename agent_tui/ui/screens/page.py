"""Shows a `Page`: headings and rows in two aligned columns."""

from collections.abc import Iterator, Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Input, Static

from agent_tui.commands.core.front import Page, PageSection
from agent_tui.safe_text import safe_text
from agent_tui.ui.parts import FieldRow, KeysLine
from agent_tui.ui.screens.modal import ReadingScreen

_MAX_FIRST_COLUMN = 28


class PageScreen(ReadingScreen):
    """A page whose contents are complete when it opens."""

    def __init__(self, page: Page) -> None:
        super().__init__()
        self._page = page

    def compose(self) -> ComposeResult:
        """Title, sections, a line of keys."""
        with VerticalScroll(id="page", classes="frame", can_focus=False):
            yield Static(safe_text(self._page.title), id="page-title", markup=False)
            if self._page.is_searched:
                field = Input(placeholder="Type to search", id="page-search", compact=True)
                yield FieldRow(field)
            yield from section_widgets(self._page.sections)
            yield Static("Nothing found.", id="page-nothing", markup=False)
            yield KeysLine("↑↓ scroll · esc close", id="page-keys")

    def on_mount(self) -> None:
        """Focus the search field, if there is one."""
        self.query_one("#page-nothing").display = False
        if self._page.is_searched:
            self.query_one("#page-search").focus()

    @on(Input.Changed, "#page-search")
    def _search(self, event: Input.Changed) -> None:
        """Show the rows that have all the words, with their headings."""
        words = event.value.lower().split()
        found = False
        heading: Widget | None = None
        for widget in self.query(".page-heading, .page-row").results(Widget):
            if not isinstance(widget, PageRow):
                heading = widget
                heading.display = not words
                continue
            widget.display = all(word in widget.words for word in words)
            found = found or widget.display
            if heading is not None and widget.display:
                heading.display = True
        self.query_one("#page-nothing").display = not found
        self.query_one("#page").scroll_home(animate=False)

    @on(Input.Submitted, "#page-search")
    def _close_on_enter(self) -> None:
        self.action_leave()


def section_widgets(sections: Sequence[PageSection]) -> Iterator[Widget]:
    """Headings and rows, the first column of all sections equally wide."""
    widest = max((len(left) for section in sections for left, _ in section.rows), default=0)
    column = min(widest, _MAX_FIRST_COLUMN)
    for number, section in enumerate(sections):
        if section.heading:
            classes = "page-heading" if number else "page-heading -first"
            yield Static(section.heading, classes=classes, markup=False)
        for left, right in section.rows:
            yield PageRow(safe_text(left), safe_text(right), column)


class PageRow(Static):
    """One row; the second column wraps under itself."""

    def __init__(self, left: str, right: str, column: int) -> None:
        super().__init__(classes="page-row", markup=False)
        self._left = left
        self._right = right
        self._column = column

    @property
    def words(self) -> str:
        """The searchable text, in lower case."""
        return f"{self._left} {self._right}".lower()

    def compose(self) -> ComposeResult:
        """The two cells."""
        left = Static(self._left, classes="page-left", markup=False)
        left.styles.width = self._column + 2
        yield left
        yield Static(self._right, classes="page-right", markup=False)
