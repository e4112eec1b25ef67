"""Shows what fills the context window: one bar, its legend, the largest messages."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.types import CSSPathType
from textual.widget import Widget
from textual.widgets import Static

from agent_tui.ui.context_map import PART_LABELS, ContextMap, PartKind, bar_cells
from agent_tui.ui.sanitise import safe_text

_STYLES: dict[PartKind, str] = {
    "system": "$secondary",
    "tools": "$accent",
    "summary": "$warning",
    "you": "$primary",
    "replies": "$success",
    "results": "$error",
    "free": "$panel",
}
_NUMBER_WIDTH = 10


class ContextBar(Widget):
    """Two rows of coloured cells, each kind as wide as its share."""

    def __init__(self, shown: ContextMap) -> None:
        super().__init__(id="context-bar")
        self._shown = shown

    def render(self) -> Content:
        """The bar at the present width."""
        row = Content.assemble(
            *(
                (" " * cells, f"on {_STYLES[kind]}")
                for kind, cells in bar_cells(self._shown.parts, self.content_size.width)
            )
        )
        return Content("\n").join([row, row])


class ContextLine(Widget):
    """A label at the left, tokens and percent at the right."""

    def __init__(self, label: Content, tokens: int, window: int) -> None:
        super().__init__(classes="context-line")
        self._label = label
        self._tokens = tokens
        self._window = window

    def render(self) -> Content:
        """The line at the present width."""
        share = f"{self._tokens * 100 / self._window:.1f}%" if self._window else ""
        numbers = f"{self._tokens:>{_NUMBER_WIDTH},}{share:>8}"
        room = max(self.content_size.width - len(numbers), 0)
        label = self._label.truncate(room, ellipsis=True, pad=True)
        return Content.assemble(label, (numbers, "$foreground-muted"))


class ContextScreen(ModalScreen[None]):
    """Closed with Esc, Enter or q."""

    CSS_PATH: ClassVar[CSSPathType | None] = ["page.tcss", "context.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "leave", "Close"),
        Binding("up,k", "scroll(-1)", "Up", show=False),
        Binding("down,j", "scroll(1)", "Down", show=False),
    ]

    def __init__(self, shown: ContextMap) -> None:
        super().__init__()
        self._shown = shown

    def compose(self) -> ComposeResult:
        """Title, bar, legend, largest messages."""
        usage = self._shown.usage
        about = "about " if usage.is_estimate else ""
        title = Content.assemble(
            ("Context window", "bold"),
            (
                f"   {about}{usage.used:,} of {usage.window:,} tokens, {usage.percent}%",
                "$foreground-muted",
            ),
        )
        with VerticalScroll(id="page", can_focus=False):
            yield Static(title, id="page-title", markup=False)
            yield ContextBar(self._shown)
            for part in self._shown.parts:
                label = Content.assemble(("■ ", _STYLES[part.kind]), PART_LABELS[part.kind])
                yield ContextLine(label, part.tokens, usage.window)
            if self._shown.largest:
                yield Static("Largest messages", classes="page-heading", markup=False)
            for message in self._shown.largest:
                label = Content(safe_text(message.label, keep_newlines=False))
                yield ContextLine(label, message.tokens, usage.window)
            yield Static("/compact makes room · esc close", id="page-keys", markup=False)

    def action_scroll(self, step: int) -> None:
        """Scroll the page."""
        self.query_one("#page").scroll_relative(y=step, animate=False)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)
