"""The answers to a question as rows: one is marked, and each has a letter and a digit."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Static

from agent_tui.safe_text import safe_text

_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer.

    Attributes:
        key: Its letter; empty if only its digit works.
        label: What the user reads.
        details: Its effect, muted after the label.
    """

    key: str
    label: str
    details: str = ""


class AnswerLine(Static):
    """A row on the screen, which can be clicked. Long ones wrap below their label."""

    class Clicked(Message):
        """The row was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, number: int) -> None:
        super().__init__(classes="answer", markup=False)
        self._number = number
        self._sign, self._words = Content(), Content()

    def show(self, row: AnswerRow | None, *, is_marked: bool) -> None:
        """Draw `row`; None hides the line."""
        self.display = row is not None
        self.set_class(is_marked, "-marked")
        if row is None:
            return
        sign = "›" if is_marked else " "
        details = safe_text(row.details, keep_newlines=False)
        key = row.key or self._number + 1
        self._sign = Content.assemble((f"{sign}{key} ", "bold $primary"), " ")
        self._words = Content.assemble(
            safe_text(row.label, keep_newlines=False),
            (f"   {details}" if details else "", "$foreground-muted"),
        )
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The number of lines of the answer."""
        return len(self._lines(width))

    def render(self) -> Content:
        """The answer, wrapped."""
        return Content("\n").join(self._lines(self.content_size.width))

    def _lines(self, width: int) -> list[Content]:
        indent = self._sign.cell_length
        first, *others = self._words.wrap(width - indent) if width > indent else [self._words]
        return [self._sign + first, *(line.pad_left(indent) for line in others)]

    def on_click(self, event: events.Click) -> None:
        """Tell the list."""
        event.stop()
        self.post_message(self.Clicked(self._number))


class AnswerList(Vertical):
    """Rows of which one is marked. It takes no focus: who asks hands it the keys."""

    def __init__(self, rows: Sequence[AnswerRow] = (), marked: int | None = 0) -> None:
        super().__init__(id="answers")
        self._rows = tuple(rows)
        self.marked = marked

    def on_mount(self) -> None:
        """Draw the rows that were there from the start."""
        self._draw()

    def show(self, rows: Sequence[AnswerRow], marked: int | None = 0) -> None:
        """Show other rows."""
        self._rows, self.marked = tuple(rows), marked
        self._draw()

    def mark(self, number: int | None) -> None:
        """Mark another row; None marks none, so that Enter gives no answer."""
        self.marked = number
        self._draw()

    def move(self, step: int) -> None:
        """Mark the row below or above, wrapping at the ends."""
        first = 0 if step > 0 else len(self._rows) - 1
        self.mark(first if self.marked is None else (self.marked + step) % len(self._rows))

    @property
    def keys(self) -> frozenset[str]:
        """Every letter and digit that is an answer."""
        digits = (str(number + 1) for number in range(min(len(self._rows), _MOST_DIGITS)))
        return frozenset({*digits, *(row.key for row in self._rows if row.key)})

    def number_for(self, key: str) -> int | None:
        """The index of the answer for `key`: a letter, a digit, or Enter for the marked one."""
        if key == "enter":
            return self.marked
        if key not in self.keys:
            return None
        if key.isdecimal():
            return int(key) - 1
        return next(number for number, row in enumerate(self._rows) if row.key == key)

    def _draw(self) -> None:
        if not self.is_attached:
            return
        lines = list(self.query(AnswerLine))
        added = [AnswerLine(number) for number in range(len(lines), len(self._rows))]
        if added:
            self.mount_all(added)
        for number, line in enumerate([*lines, *added]):
            row = self._rows[number] if number < len(self._rows) else None
            line.show(row, is_marked=number == self.marked)
