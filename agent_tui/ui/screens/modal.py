"""The bases of all screens above the chat, and the screen of a `Page`: headings and rows."""

import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import (
    ClassVar,
    Generic,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    runtime_checkable,
)

from textual import events, getters, on
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.types import CSSPathType
from textual.widget import Widget
from textual.widgets import Input, Static

from agent_tui.commands.core.front import Page, PageSection, Showable
from agent_tui.safe_text import safe_text
from agent_tui.ui.parts import FieldRow, KeysLine, any_app, follow_layout

ResultT = TypeVar("ResultT")
AppResultT = TypeVar("AppResultT")
_WHEEL_ROWS = 2
ParamsT = ParamSpec("ParamsT")


FollowUp: TypeAlias = Callable[[], Awaitable[None]]
"""What follows a screen once it is closed."""


@runtime_checkable
class BringsScreen(Showable, Protocol):
    """A `Showable` of a feature that has a screen."""

    def make_screen(self) -> Screen[FollowUp] | Screen[None]:
        """The screen that shows it. It may close with what follows."""
        ...


@runtime_checkable
class BringsPicker(Protocol):
    """A `Pickable` of a feature that has a screen to pick from."""

    def make_picker(self) -> Screen[object]:
        """The screen, whose result is the picked value."""
        ...


class Modal(ModalScreen[ResultT], Generic[ResultT]):
    """A screen above others that closes only once.

    Fast keys may still arrive after the key that closes it. Textual would then close the screen
    below, and fail if that is the chat. A subclass in another folder keeps the styles it inherits:
    Textual alone would look for them beside the subclass.
    """

    def __init_subclass__(cls) -> None:
        """Name the styles of the class by their full paths."""
        super().__init_subclass__()
        styles: object = vars(cls).get("CSS_PATH")
        if isinstance(styles, list):
            folder = Path(sys.modules[cls.__module__].__file__ or "").parent
            cls.CSS_PATH = [folder / str(style) for style in cast("list[str]", styles)]

    app = getters.app(any_app)
    waits_below = ""

    @on(events.Mount)
    def _follow_screen_below(self) -> None:
        stack = self.app.screen_stack
        below = stack[stack.index(self) - 1] if self in stack else None
        if isinstance(below, Modal):
            self.show_waiting(below.waits_below)

    def show_waiting(self, what: str) -> None:
        """Show in the frame what waits in the chat until this closes; empty for nothing."""
        if what != self.waits_below:
            self.waits_below = what
            for frame in self.query(".frame"):
                frame.border_subtitle = what

    def dismiss(self, result: ResultT | None = None) -> AwaitComplete:
        """Close it with `result`; does nothing once it is closed."""
        if not self.is_current:
            return AwaitComplete.nothing()
        return super().dismiss(result)

    def when_drawn(
        self, act: Callable[ParamsT, None], *args: ParamsT.args, **kwargs: ParamsT.kwargs
    ) -> None:
        """Call `act` after the next refresh, unless the screen is being removed by then.

        Textual calls back a screen whose widgets are gone already, where a query finds nothing
        and ends the program.
        """

        def act_if_there() -> None:
            if self.is_mounted and self.display:
                act(*args, **kwargs)

        self.call_after_refresh(act_if_there)


class QuestionScreen(Modal[ResultT], Generic[ResultT]):
    """A question at the bottom, in a ``.question``: the chat ends above it, and can be read.

    The chat, and what scrolls in the question, are scrolled as one text.
    """

    own_scroll = ""
    """The selector of what scrolls in the question; empty for nothing."""

    @on(events.Mount)
    def _follow_layout(self) -> None:
        follow_layout(self, self, self._end_chat_above)

    @property
    def _upper(self) -> Widget | None:
        """The chat and what stands below it; None if the program ends."""
        return next(iter(screen.query("#upper")), None) if (screen := self._chat_screen) else None

    @property
    def _chat_screen(self) -> Screen[object] | None:
        return next(iter(self.app.screen_stack), None)

    def _end_chat_above(self) -> None:
        top = min((each.region.y for each in self.query(".question")), default=self.size.height)
        if (upper := self._upper) is not None:
            upper.styles.padding = (0, 0, max(upper.region.bottom - top, 0), 0)

    @on(events.Unmount)
    def _give_rows_back(self) -> None:
        if (upper := self._upper) is not None:
            upper.styles.padding = 0

    @on(events.MouseScrollUp)
    def _scroll_up(self) -> None:
        self.action_scroll(-_WHEEL_ROWS)

    @on(events.MouseScrollDown)
    def _scroll_down(self) -> None:
        self.action_scroll(_WHEEL_ROWS)

    def action_scroll(self, step: int) -> None:
        """Scroll by `step` rows: up in the question first, down in the chat first."""
        chat = [*self._upper.children[:1]] if self._upper is not None else []
        own = [*self.query(self.own_scroll)] if self.own_scroll else []
        for each in (*own, *chat) if step < 0 else (*chat, *own):
            if each.scroll_y > 0 if step < 0 else each.scroll_y < each.max_scroll_y:
                each.scroll_relative(y=step, animate=False)
                return


def show_waiting(app: App[AppResultT], what: str) -> None:
    """Show on all screens above the chat that `what` waits there; empty for nothing."""
    for screen in app.screen_stack:
        if isinstance(screen, Modal):
            screen.show_waiting(what)


class ReadingScreen(Modal[FollowUp]):
    """A page that scrolls; closed with Esc, Enter or q. Its scrolling part is ``#page``."""

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "leave", "Close"),
        Binding("up,k", "scroll(-1)", "Up", show=False),
        Binding("down,j", "scroll(1)", "Down", show=False),
        Binding("pageup", "scroll(-10)", "Page up", show=False),
        Binding("pagedown,space", "scroll(10)", "Page down", show=False),
    ]

    def action_scroll(self, step: int) -> None:
        """Scroll the page."""
        self.query_one("#page").scroll_relative(y=step, animate=False)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)


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
        """Focus the search field, if there is one, and begin where the page opens."""
        if self._page.opens_at_end:
            self.when_drawn(self.query_one("#page").scroll_end, animate=False)
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
        self.dismiss(None)

    def action_leave(self) -> None:
        """Clear the search, else close."""
        for field in self.query("#page-search").results(Input):
            if field.value:
                field.value = ""
                return
        self.dismiss(None)


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
