"""Shows a `Page`: headings and rows in two aligned columns."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.types import CSSPathType
from textual.widgets import Static

from agent_tui.ui.pages import Page
from agent_tui.ui.sanitise import safe_text

MAX_FIRST_COLUMN = 28


class PageScreen(ModalScreen[None]):
    """Closed with Esc, Enter or q."""

    CSS_PATH: ClassVar[CSSPathType | None] = "page.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "leave", "Close"),
        Binding("up,k", "scroll(-1)", "Up", show=False),
        Binding("down,j", "scroll(1)", "Down", show=False),
        Binding("pageup", "scroll(-10)", "Page up", show=False),
        Binding("pagedown,space", "scroll(10)", "Page down", show=False),
    ]

    def __init__(self, page: Page) -> None:
        super().__init__()
        self._page = page

    def compose(self) -> ComposeResult:
        """Title, sections, a line of keys."""
        widest = max(
            (len(left) for section in self._page.sections for left, _ in section.rows), default=0
        )
        column = min(widest, MAX_FIRST_COLUMN)
        with VerticalScroll(id="page", can_focus=False):
            yield Static(safe_text(self._page.title), id="page-title", markup=False)
            for number, section in enumerate(self._page.sections):
                if section.heading:
                    classes = "page-heading -first" if number == 0 else "page-heading"
                    yield Static(section.heading, classes=classes, markup=False)
                for left, right in section.rows:
                    yield PageRow(safe_text(left), safe_text(right), column)
            yield Static("↑↓ scroll · esc close", id="page-keys", markup=False)

    def action_scroll(self, step: int) -> None:
        """Scroll the page."""
        self.query_one("#page").scroll_relative(y=step, animate=False)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)


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
