"""Shows a `Page`: headings and rows in two aligned columns."""

from collections.abc import Iterator, Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from agent_tui.commands.core.pages import Page, PageSection
from agent_tui.safe_text import safe_text
from agent_tui.ui.screens.reading import ReadingScreen

_MAX_FIRST_COLUMN = 28


class PageScreen(ReadingScreen):
    """A page that is known whole."""

    def __init__(self, page: Page) -> None:
        super().__init__()
        self._page = page

    def compose(self) -> ComposeResult:
        """Title, sections, a line of keys."""
        with VerticalScroll(id="page", can_focus=False):
            yield Static(safe_text(self._page.title), id="page-title", markup=False)
            yield from section_widgets(self._page.sections)
            yield Static("↑↓ scroll · esc close", id="page-keys", markup=False)


def section_widgets(
    sections: Sequence[PageSection], *, is_after_other: bool = False
) -> Iterator[Widget]:
    """Headings and rows, the first column of all sections equally wide.

    The first heading needs a blank row above it only where it `is_after_other` content.
    """
    widest = max((len(left) for section in sections for left, _ in section.rows), default=0)
    column = min(widest, _MAX_FIRST_COLUMN)
    for number, section in enumerate(sections):
        if section.heading:
            is_first = number == 0 and not is_after_other
            classes = "page-heading -first" if is_first else "page-heading"
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

    def compose(self) -> ComposeResult:
        """The two cells."""
        left = Static(self._left, classes="page-left", markup=False)
        left.styles.width = self._column + 2
        yield left
        yield Static(self._right, classes="page-right", markup=False)
